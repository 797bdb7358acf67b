"""The moment at which charts are asked for in tests."""

from zoneinfo import ZoneInfo

from keystead import dates

LA = ZoneInfo("America/Los_Angeles")
NOW = 1_750_000_000.0  # 2025-06-15 08:06 in Los Angeles
TODAY = dates.unix_date(NOW, LA)
