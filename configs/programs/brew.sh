#!/bin/sh
# A cup of coffee, in whole numbers and plain sh: brew.sh GRAMS CELSIUS SECONDS GRIND
# Prints {"loss": ...}: how far the cup is from a good one. Fine grounds clog in water too hot.
set -eu
grams=$1 celsius=$2 seconds=$3 grind=$4

case $grind in
  coarse) speed=70 ;;
  medium) speed=100 ;;
  fine) speed=150 ;;
  *) echo "no such grind: $grind" >&2; exit 2 ;;
esac
if [ "$grind" = fine ] && [ "$celsius" -gt 97 ]; then
  echo "the filter is clogged" >&2
  exit 1
fi

# Extraction, per mille: it grows with time, heat and fineness, and is right at 50.
extraction=$((speed * (celsius - 60) * seconds / (50 * (seconds + 120))))
# Strength: grams to the cup, right at 15 and less so the further away.
strength=$((grams - 15))
off=$((extraction - 50))
loss=$((off * off + 12 * strength * strength + seconds))

printf '{"extraction": %d, "loss": %d.%03d}\n' "$extraction" $((loss / 1000)) $((loss % 1000))
