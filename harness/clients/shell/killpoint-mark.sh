# One call by which a worker names a boundary for killpoint; POSIX sh, to be sourced:
#
#     . ./killpoint-mark.sh
#     killpoint_mark result-committed || exit
#
# Outside a trial KILLPOINT_SOCKET is unset and the call returns 0 at once. Inside a trial it blocks until the
# harness answers, without a limit of its own: being held at this very moment is what it is for.
#
# Status: 0 go on; 1 the harness did not say "go"; 65 invalid name (outside a trial too, so that a typo
# can't hide until then); 69 no program here can speak to a Unix socket. On anything but 0 the worker should stop.

killpoint_mark() {
    _killpoint_name=${1-}
    if ! _killpoint_why=$(_killpoint_why_invalid "$_killpoint_name"); then
        printf '%s\n' "invalid mark name \`$_killpoint_name\`: $_killpoint_why" >&2
        return 65
    fi
    [ -n "${KILLPOINT_SOCKET-}" ] || return 0
    if command -v killpoint >/dev/null 2>&1; then
        killpoint mark -- "$_killpoint_name" || return 1
        return 0
    fi
    _killpoint_transport=$(_killpoint_transport) || {
        printf '%s\n' "can't reach killpoint: none of killpoint, socat, nc -U, perl, python3 is on PATH" >&2
        return 69
    }
    # The x keeps the answer's newline, which shows that the line is whole.
    _killpoint_answer=$("_killpoint_by_$_killpoint_transport" "killpoint-mark 1 $_killpoint_name"; printf x)
    _killpoint_newline='
'
    case $_killpoint_answer in
        "go${_killpoint_newline}x") return 0 ;;
        "error "*"${_killpoint_newline}x")
            _killpoint_answer=${_killpoint_answer#error }
            printf '%s\n' "killpoint refused the mark: ${_killpoint_answer%"${_killpoint_newline}x"}" >&2 ;;
        *) printf '%s\n' "killpoint closed the connection without a valid answer to the mark \`$_killpoint_name\`, or $KILLPOINT_SOCKET can't be reached" >&2 ;;
    esac
    return 1
}

# White space and control characters outside ASCII are left to the harness to refuse.
_killpoint_why_invalid() (
    LC_ALL=C
    if [ -z "$1" ] || [ "$(printf %s "$1" | wc -c)" -gt 200 ]; then
        printf %s 'it must have 1 to 200 bytes'
        return 1
    fi
    case $1 in
        *[[:space:][:cntrl:]]*)
            printf %s 'it must have no white space and no control characters'
            return 1 ;;
        *'['*) ;;
        *) return 0 ;;
    esac
    case ${1%%'['*} in ?*) case ${1#*'['} in ?*']') return 0 ;; esac ;; esac
    printf %s 'a selector is `[text]` at the end'
    return 1
)

_killpoint_transport() {
    if command -v socat >/dev/null 2>&1; then
        printf socat
    elif command -v nc >/dev/null 2>&1 && nc -h 2>&1 | grep -q -e '-[a-zA-Z0-9]*U'; then
        printf nc
    elif command -v perl >/dev/null 2>&1 && perl -MIO::Socket::UNIX -e 1 2>/dev/null; then
        printf perl
    elif command -v python3 >/dev/null 2>&1; then
        printf python3
    else
        return 1
    fi
}

# Each sends one line and writes the answer line. The end of our input must not look like our own end to the
# harness, so the sending side stays open until the harness closes.
_killpoint_by_socat() {
    printf '%s\n' "$1" | socat STDIO,ignoreeof "UNIX-CONNECT:$KILLPOINT_SOCKET"
}

_killpoint_by_nc() {
    printf '%s\n' "$1" | nc -U "$KILLPOINT_SOCKET"
}

_killpoint_by_perl() {
    perl -MIO::Socket::UNIX -e '
        my $socket = IO::Socket::UNIX->new(Peer => $ENV{KILLPOINT_SOCKET}) or die "$ENV{KILLPOINT_SOCKET}: $!\n";
        syswrite $socket, "$ARGV[0]\n";
        my $answer = <$socket>;
        print $answer if defined $answer;
    ' "$1"
}

_killpoint_by_python3() {
    python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["KILLPOINT_SOCKET"])
s.sendall(os.fsencode(sys.argv[1]) + b"\n")
sys.stdout.buffer.write(s.makefile("rb").readline(4096))
' "$1"
}
