"""The pages that describe the HTTP interface. Everything they load comes from this server."""

from importlib.resources import files

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response

from keystead.errors import NotFound

_MEDIA_TYPES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


def routes(app: FastAPI) -> APIRouter:
    """``/docs`` and its two files."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def show_docs() -> Response:
        return get_swagger_ui_html(
            openapi_url=app.openapi_url or "/openapi.json",
            title=f"{app.title} interface",
            swagger_js_url="/docs/swagger-ui-bundle.js",
            swagger_css_url="/docs/swagger-ui.css",
            swagger_favicon_url="data:,",
            # Without this the page asks a public service to judge the document.
            swagger_ui_parameters={"validatorUrl": None, "defaultModelsExpandDepth": 0},
        )

    @router.get("/docs/{name}")
    async def show_file(name: str) -> Response:
        if name not in _MEDIA_TYPES:
            raise NotFound(f"there is no file {name[:100]!r} here")
        # The files of Swagger UI, as a package brings them; its own code is not used.
        raw = files("fastapi_offline").joinpath("static", name).read_bytes()
        return Response(raw, media_type=_MEDIA_TYPES[name], headers={"Cache-Control": "max-age=86400"})

    return router
