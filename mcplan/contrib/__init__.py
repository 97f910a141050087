"""Import of stances and contact sequences from other programs (pymanoid, mc_rtc)."""
