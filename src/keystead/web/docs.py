"""The pages that describe the HTTP interface. Everything they load comes from this server."""

from importlib.resources import files

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount

from keystead.errors import NotFound

# The look of the way back, and the theme that was chosen on the dashboard.
_BAR = """<style>
.back { display: block; padding: 12px 20px; font: 600 14px/1.4 system-ui, sans-serif; color: #0d5f52;
  text-decoration: none; border-bottom: 1px solid #d9dee6; } .back:hover { text-decoration: underline; }
[data-theme=dark], [data-theme=dark] body { background: #0f1418; }
[data-theme=dark] .back { color: #5eead4; border-color: #2a333c; }
[data-theme=dark] .swagger-ui { filter: invert(.9) hue-rotate(180deg); }
</style><script>
document.documentElement.dataset.theme = localStorage.getItem("keystead-theme")
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
</script>"""
_BACK = '<a class="back" href="/">&larr; Dashboard</a>'
_MEDIA_TYPES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


def routes(app: FastAPI) -> APIRouter:
    """``/docs`` and its two files."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def show_docs() -> Response:
        page = get_swagger_ui_html(
            openapi_url=app.openapi_url or "/openapi.json",
            title=f"{app.title} interface",
            swagger_js_url="/docs/swagger-ui-bundle.js",
            swagger_css_url="/docs/swagger-ui.css",
            swagger_favicon_url="data:,",
            # Without this the page asks a public service to judge the document.
            swagger_ui_parameters={"validatorUrl": None, "defaultModelsExpandDepth": 0, "docExpansion": "none"},
        )
        served = any(isinstance(route, Mount) for route in app.routes)  # nothing but the dashboard is mounted
        return HTMLResponse(bytes(page.body).decode().replace("<body>", f"<body>{_BAR}{_BACK if served else ''}", 1))

    @router.get("/docs/{name}")
    async def show_file(name: str) -> Response:
        if name not in _MEDIA_TYPES:
            raise NotFound(f"there is no file {name[:100]!r} here")
        # The files of Swagger UI, as a package brings them; its own code is not used.
        raw = files("fastapi_offline").joinpath("static", name).read_bytes()
        return Response(raw, media_type=_MEDIA_TYPES[name], headers={"Cache-Control": "max-age=86400"})

    return router
