#!/bin/sh
# status.sh STATE: prints one JSON line per message of an outbox of files.
set -eu

cd "$1/outbox" 2>/dev/null || exit 0
for folder in pending sending sent failed unknown; do
    for file in "$folder"/*; do
        [ -e "$file" ] || continue
        id=${file##*/}
        to=$(sed 's/.*"to":"\([^"]*\)".*/\1/' "$file")
        printf '{"action":"%s","key":"%s","destination":"%s","state":"%s"}\n' "$id" "$id" "$to" "$folder"
    done
done
