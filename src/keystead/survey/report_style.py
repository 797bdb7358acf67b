"""The frame of the HTML report: light and dark, readable on a telephone, one small script for the filter."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@title@</title>
<style>
:root { --ink: #1d2733; --soft: #5c6b7a; --line: #dde3ea; --page: #ffffff; --fine: #7fb7a3; --note: #a9b6c4;
  --warning: #e3b04b; --error: #d9705f; --on: #16202b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #9aa8b6; --line: #2c3742; --page: #12181f;
  --fine: #4f8f7a; --note: #5d6c7b; --warning: #b98a2c; --error: #b55445; --on: #f4f7fa; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto; padding: 24px;
  max-width: 1260px; }
h1 { font-size: 28px; margin: 0 0 8px; } h2 { font-size: 19px; margin: 36px 0 10px; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 12px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.chip { display: inline-block; padding: 1px 9px; border-radius: 10px; color: var(--on); margin-right: 6px;
  font-size: 13px; }
.chip.fine, i.fine { background: var(--fine); } .chip.note, i.note { background: var(--note); }
.chip.warning, i.warning { background: var(--warning); } .chip.error, i.error { background: var(--error); }
rect.fine { fill: var(--fine); } rect.note { fill: var(--note); } rect.warning { fill: var(--warning); }
rect.error { fill: var(--error); }
svg { width: 100%; height: auto; display: block; } svg.times { max-width: 920px; }
svg text { font: 12px ui-monospace, monospace; fill: var(--on); pointer-events: none; }
svg text.small { font-size: 11px; opacity: .8; } svg text.count { text-anchor: middle; fill: var(--ink);
  font-family: system-ui, sans-serif; }
.legend { color: var(--soft); font-size: 13px; } .legend i { display: inline-block; width: 12px; height: 12px;
  border-radius: 2px; margin: 0 4px 0 12px; vertical-align: -1px; }
.partial { border-left: 4px solid var(--warning); padding: 4px 12px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: 6px 10px; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; } .number { text-align: right; white-space: nowrap; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; } code.key { color: var(--soft); }
small { color: var(--soft); } tr.known { opacity: .6; }
input { font: inherit; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: 6px;
  padding: 6px 10px; width: 320px; max-width: 100%; margin-bottom: 8px; }
</style>
</head>
<body>
@body@
<script>
const filter = document.getElementById("filter");
if (filter) filter.addEventListener("input", () => {
  const wanted = filter.value.toLowerCase();
  for (const row of document.querySelectorAll("#findings tbody tr"))
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
</script>
</body>
</html>
"""
