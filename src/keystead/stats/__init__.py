"""Statistics: what is counted, its rotation into SQL, and its charts."""

from typing import TYPE_CHECKING

from keystead.fronts import opened_when_used

if TYPE_CHECKING:
    from keystead.stats.catalogue import Catalogue, Charted
    from keystead.stats.charts import Charts
    from keystead.stats.lateness import late_days
    from keystead.stats.rotation import Rotation
    from keystead.stats.rotation_report import Rotated, RotationReport
    from keystead.stats.series import Series
    from keystead.stats.statistics import Statistics
    from keystead.stats.tables import FamilyTables
else:
    __getattr__ = opened_when_used(__name__)

__all__ = [
    "Catalogue",
    "Charted",
    "Charts",
    "FamilyTables",
    "Rotated",
    "Rotation",
    "RotationReport",
    "Series",
    "Statistics",
    "late_days",
]
