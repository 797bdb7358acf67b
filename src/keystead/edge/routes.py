"""The edge's own door: the block list, for operators."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from keystead.edge.blocks import Blocks
from keystead.edge.callers import Caller
from keystead.edge.keys import PIN_MOST_SECONDS
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


class BlockList(BaseModel):
    """Blocked addresses, in no order."""

    items: list[BlockShown]
    complete: bool = Field(description="whether these are all")


class Pin(BaseModel):
    """A block by hand."""

    address: str
    lasts_seconds: int = Field(ge=1, le=PIN_MOST_SECONDS)


def routes(valkey: Valkey, registry: Registry) -> APIRouter:
    """``/blocks``: list, pin, take away."""
    router = APIRouter(tags=["blocks"])
    blocks = Blocks(valkey, registry)

    @router.get("/blocks")
    async def list_blocks(request: Request, limit: Annotated[int, Query(ge=1, le=500)] = 100) -> BlockList:
        """Blocked addresses with what is left of their blocks."""
        _caller(request).require(SCOPE)
        found = await blocks.listed(most=limit + 1)
        items = [
            BlockShown(address=block.address, reason=block.reason, seconds_left=block.seconds_left,
                       violations=block.violations)
            for block in found[:limit]
        ]
        return BlockList(items=items, complete=len(found) <= limit)

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
