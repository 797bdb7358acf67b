"""The edge's own door: the block list, for operators."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from keystead.edge.blocks import Blocks
from keystead.edge.callers import Caller
from keystead.edge.keys import PIN_MOST_SECONDS
from keystead.edge.paged import FIRST_LIMIT, Cursor, Limit, Paged
from keystead.edge.paging import PageRequest
from keystead.engine import Valkey
from keystead.errors import NotFound
from keystead.keys import Registry

SCOPE = "blocks"


class BlockShown(BaseModel):
    """One blocked address."""

    address: str
    reason: str
    seconds_left: float | None
    violations: int


class BlockList(Paged):
    """Some of the blocked addresses, in the order of their letters."""

    items: list[BlockShown]


class Pin(BaseModel):
    """A block by hand."""

    address: str
    lasts_seconds: int = Field(ge=1, le=PIN_MOST_SECONDS)


def routes(valkey: Valkey, registry: Registry) -> APIRouter:
    """``/blocks``: list, pin, take away."""
    router = APIRouter(tags=["blocks"])
    blocks = Blocks(valkey, registry)

    @router.get("/blocks")
    async def list_blocks(request: Request, limit: Limit = FIRST_LIMIT, cursor: Cursor = None) -> BlockList:
        """Blocked addresses with what is left of their blocks."""
        _caller(request).require(SCOPE)
        page = await blocks.page(PageRequest(limit, cursor))
        items = [
            BlockShown(address=block.address, reason=block.reason, seconds_left=block.seconds_left,
                       violations=block.violations)
            for block in page.items
        ]
        return BlockList(items=items, next_cursor=page.next_cursor)

    @router.post("/blocks", status_code=204)
    async def pin_block(request: Request, pin: Pin) -> None:
        """Block an address for exactly as long as said."""
        _caller(request).require(SCOPE)
        await blocks.pin(pin.address, lasts_seconds=pin.lasts_seconds)

    @router.delete("/blocks/{address:path}", status_code=204)
    async def unblock(request: Request, address: str) -> None:
        """Forget the block and the violations of an address."""
        _caller(request).require(SCOPE)
        if not await blocks.unblock(address):
            raise NotFound("this address is not blocked and has no violations")

    return router


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller
