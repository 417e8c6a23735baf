"""A study: cells x repeats x samples, run or resumed in its directory."""
