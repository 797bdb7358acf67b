local function answer(fits, remaining, retry_ms, reset_ms, at, write)
  return {fits and 1 or 0, remaining, fits and 0 or math.ceil(retry_ms), math.ceil(reset_ms), string.format('%.0f', at)}
end
