#!/bin/sh
# An outbox of files: one file per message, and the folder it lies in is its state.
#
#   worker.sh enqueue N    puts N messages into pending/
#   worker.sh run          sends all that there are, and ends
#   worker.sh run --wrong  the same, but resends blindly what an earlier life left in sending/
#
# Needs OUTBOX (the folder) and PROVIDER_URL. A rename is the only change of state that is ever made, so that
# a death at any time leaves each message in exactly one folder.
set -eu

folders="pending sending sent failed unknown"
messages="$PROVIDER_URL/v1/messages"

for folder in $folders new; do
    mkdir -p "$OUTBOX/$folder"
done
cd "$OUTBOX"
answer=answer.json

# move ID FROM TO: the change is on disk before anything that follows from it.
move() {
    mv "$2/$1" "$3/$1"
    sync "$2" "$3"
}

enqueue() {
    number=1
    while [ "$number" -le "$1" ]; do
        id="job-$number"
        printf '{"to":"user%s@example.com","body":"hello %s","ref":"%s"}\n' "$number" "$number" "$id" >"new/$id"
        sync "new/$id"
        move "$id" new pending
        number=$((number + 1))
    done
    echo ENQUEUED
}

# post ID: 0 when it was accepted, 1 when it was refused, 2 when that is not known.
post() {
    status=$(curl --silent --max-time 10 --output "$answer" --write-out '%{http_code}' \
        --header "Idempotency-Key: $1" --header "Content-Type: application/json" \
        --data-binary "@sending/$1" "$messages") || return 2
    case $status in
    2??) return 0 ;;
    408 | 409 | 425 | 429) return 2 ;;
    4??) return 1 ;;
    *) return 2 ;;
    esac
}

# look_up ID: 0 when the provider has it, 1 when it has not, 2 when it can't be asked.
look_up() {
    curl --silent --fail --max-time 10 --output "$answer" "$messages?idempotency_key=$1" || return 2
    case $(tr -d ' \t\r\n' <"$answer") in
    *'"data":[]'*) return 1 ;;
    *'"data":[{'*) return 0 ;;
    *) return 2 ;;
    esac
}

# find_out ID: as look_up, but absent only when it was absent twice. A provider may accept a request some
# time after it took it.
find_out() {
    found=0
    look_up "$1" || found=$?
    if [ "$found" -eq 1 ]; then
        sleep 0.7
        found=0
        look_up "$1" || found=$?
    fi
    return "$found"
}

# send ID: what lies in sending/ goes out, under the same key each time.
send() {
    tries=0
    while [ "$tries" -lt 3 ]; do
        tries=$((tries + 1))
        outcome=0
        post "$1" || outcome=$?
        case $outcome in
        0)
            move "$1" sending sent
            return
            ;;
        1)
            move "$1" sending failed
            return
            ;;
        esac
        outcome=0
        find_out "$1" || outcome=$?
        case $outcome in
        0)
            move "$1" sending sent
            return
            ;;
        2) break ;;
        esac
    done
    move "$1" sending unknown
}

# recover ID: an earlier life died between the intent and the outcome.
recover() {
    outcome=0
    find_out "$1" || outcome=$?
    case $outcome in
    0) move "$1" sending sent ;;
    1) send "$1" ;;
    *) move "$1" sending unknown ;;
    esac
}

run() {
    for file in sending/*; do
        [ -e "$file" ] || continue
        if [ "$1" = --wrong ]; then send "${file##*/}"; else recover "${file##*/}"; fi
    done
    for file in pending/*; do
        [ -e "$file" ] || continue
        move "${file##*/}" pending sending
        send "${file##*/}"
    done
}

case ${1:-} in
enqueue) enqueue "$2" ;;
run) run "${2:-}" ;;
*)
    echo "usage: worker.sh enqueue N | run [--wrong]" >&2
    exit 64
    ;;
esac
