/* An outbox in SQLite, in C with nothing but sqlite3 and sockets.
 *
 *   worker enqueue N    commits N messages
 *   worker run          sends all that there is to send, and ends
 *   worker run --wrong  the same, but with a new key for each attempt, and resending blindly what an
 *                       earlier life left in doubt
 *
 * Needs WORKER_DB (the database) and PROVIDER_URL (http://ADDRESS:PORT).
 * Build: cc -O1 -o worker worker.c -lsqlite3
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 16, TIMEOUT_S = 10, SECOND_LOOK_MS = 700, TRIES_MAX = 3 };

/* What is known after a request or a lookup. */
enum outcome { YES, NO, UNCLEAR };

struct message {
    char ref[64], recipient[128], body[256], key[128];
};

static sqlite3 *db;

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, db ? sqlite3_errmsg(db) : "no database");
    exit(1);
}

/* One statement with text parameters, committed when this returns: what follows from it comes after. */
static void execute(const char *sql, int count, ...) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) die(sql);
    va_list texts;
    va_start(texts, count);
    for (int i = 1; i <= count; i++)
        sqlite3_bind_text(statement, i, va_arg(texts, const char *), -1, SQLITE_TRANSIENT);
    va_end(texts);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    }
    if (code != SQLITE_DONE) die(sql);
    sqlite3_finalize(statement);
}

static void open_database(void) {
    const char *path = getenv("WORKER_DB");
    if (!path || sqlite3_open(path, &db) != SQLITE_OK) die("opening WORKER_DB");
    sqlite3_busy_timeout(db, 5000);
    execute("pragma journal_mode = wal", 0);
    execute("pragma synchronous = full", 0);
    execute("create table if not exists messages (ref text primary key, recipient text not null, "
            "body text not null, key text not null, state text not null, attempts integer not null)",
            0);
}

static void enqueue(int count) {
    execute("begin immediate", 0);
    for (int number = 1; number <= count; number++) {
        struct message message;
        snprintf(message.ref, sizeof message.ref, "job-%d", number);
        snprintf(message.recipient, sizeof message.recipient, "user%d@example.com", number);
        snprintf(message.body, sizeof message.body, "hello %d", number);
        execute("insert into messages values (?1, ?2, ?3, 'key-' || ?1, 'created', 0)", 3, message.ref,
                message.recipient, message.body);
    }
    execute("commit", 0);
    puts("ENQUEUED");
}

/* A connection to the provider, or -1. */
static int dial(void) {
    char address[64];
    int port;
    const char *url = getenv("PROVIDER_URL");
    if (!url || sscanf(url, "http://%63[0-9.]:%d", address, &port) != 2) {
        fprintf(stderr, "PROVIDER_URL must be http://ADDRESS:PORT\n");
        exit(1);
    }
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    inet_pton(AF_INET, address, &to.sin_addr);
    if (connect(connection, (struct sockaddr *)&to, sizeof to) != 0) {
        close(connection);
        return -1;
    }
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return connection;
}

/* Reads to the end of the connection. Returns whether that end was reached. A process that was stopped and
 * continued gets EINTR from a socket with a timeout, without any handler: that is no answer. */
static int read_all(int connection, char *answer) {
    size_t got = 0;
    ssize_t count = 1;
    while (got < ANSWER_MAX - 1 && count > 0) {
        count = TEMP_FAILURE_RETRY(recv(connection, answer + got, ANSWER_MAX - 1 - got, 0));
        if (count > 0) got += (size_t)count;
    }
    answer[got] = '\0';
    return count == 0;
}

/* Sends one request and reads the answer to its end. Returns the status, or 0 where no whole answer came. */
static int exchange(const char *request, char *answer) {
    int connection = dial();
    if (connection < 0) return 0;
    size_t length = strlen(request), sent = 0;
    ssize_t written = 1;
    while (sent < length && written > 0) {
        written = TEMP_FAILURE_RETRY(send(connection, request + sent, length - sent, MSG_NOSIGNAL));
        if (written > 0) sent += (size_t)written;
    }
    /* We asked for the connection to be closed, so that only its end is the end of the answer. */
    int whole = sent == length && read_all(connection, answer);
    close(connection);
    if (!whole) return 0;
    const char *body = strstr(answer, "\r\n\r\n");
    const char *promised = strcasestr(answer, "\r\ncontent-length:");
    int status = 0;
    if (!body || sscanf(answer, "HTTP/1.1 %d", &status) != 1) return 0;
    if (promised && promised < body && strlen(body + 4) != strtoul(promised + 17, NULL, 10)) return 0;
    return status;
}

static enum outcome post(const struct message *message) {
    static char request[4096], body[1024], answer[ANSWER_MAX];
    snprintf(body, sizeof body, "{\"to\":\"%s\",\"body\":\"%s\",\"ref\":\"%s\"}", message->recipient,
             message->body, message->ref);
    snprintf(request, sizeof request,
             "POST /v1/messages HTTP/1.1\r\nHost: provider\r\nConnection: close\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\nIdempotency-Key: %s\r\n\r\n%s",
             strlen(body), message->key, body);
    int status = exchange(request, answer);
    if (status >= 200 && status < 300) return YES;
    if (status == 408 || status == 409 || status == 425 || status == 429) return UNCLEAR;
    return status >= 400 && status < 500 ? NO : UNCLEAR;
}

static enum outcome look_up(const char *key) {
    static char request[1024], answer[ANSWER_MAX];
    snprintf(request, sizeof request,
             "GET /v1/messages?idempotency_key=%s HTTP/1.1\r\nHost: provider\r\nConnection: close\r\n\r\n",
             key);
    if (exchange(request, answer) != 200) return UNCLEAR;
    if (strstr(answer, "\"data\":[]")) return NO;
    return strstr(answer, "\"data\":[{") ? YES : UNCLEAR;
}

/* As look_up, but NO only when it was absent twice: a provider may accept a request some time after it
 * took it. */
static enum outcome find_out(const char *key) {
    enum outcome found = look_up(key);
    if (found != NO) return found;
    nanosleep(&(struct timespec){.tv_nsec = SECOND_LOOK_MS * 1000000L}, NULL);
    return look_up(key);
}

static void decide(const struct message *message, const char *state) {
    execute("update messages set state = ?2 where ref = ?1", 2, message->ref, state);
}

/* The intent, with the key, is committed before the first byte. */
static void intend(struct message *message, int wrong) {
    if (wrong)
        snprintf(message->key, sizeof message->key, "%s-%ld-%ld", message->ref, (long)time(NULL),
                 (long)getpid());
    execute("update messages set state = 'sending', key = ?2, attempts = attempts + 1 where ref = ?1", 2,
            message->ref, message->key);
}

/* Sends until it is known what became of the message. */
static void send_message(struct message *message, int wrong) {
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        intend(message, wrong);
        enum outcome outcome = post(message);
        if (outcome != UNCLEAR) {
            decide(message, outcome == YES ? "sent" : "failed");
            return;
        }
        outcome = find_out(message->key);
        if (outcome == YES) {
            decide(message, "sent");
            return;
        }
        if (outcome == UNCLEAR) break;
    }
    decide(message, "unknown");
}

/* An earlier life died between the intent and the outcome. */
static void recover(struct message *message, int wrong) {
    enum outcome found = wrong ? NO : find_out(message->key);
    if (found == NO)
        send_message(message, wrong);
    else
        decide(message, found == YES ? "sent" : "unknown");
}

/* The next message in a state. Returns whether there is one. */
static int next(const char *state, struct message *message) {
    const char *sql = "select ref, recipient, body, key from messages where state = ?1 order by rowid limit 1";
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) die(sql);
    sqlite3_bind_text(statement, 1, state, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        snprintf(message->ref, sizeof message->ref, "%s", sqlite3_column_text(statement, 0));
        snprintf(message->recipient, sizeof message->recipient, "%s", sqlite3_column_text(statement, 1));
        snprintf(message->body, sizeof message->body, "%s", sqlite3_column_text(statement, 2));
        snprintf(message->key, sizeof message->key, "%s", sqlite3_column_text(statement, 3));
    } else if (code != SQLITE_DONE) {
        die(sql);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_ROW;
}

int main(int count, char **words) {
    open_database();
    if (count == 3 && strcmp(words[1], "enqueue") == 0) {
        enqueue(atoi(words[2]));
    } else if (count >= 2 && strcmp(words[1], "run") == 0) {
        int wrong = count == 3 && strcmp(words[2], "--wrong") == 0;
        struct message message;
        while (next("sending", &message)) recover(&message, wrong);
        while (next("created", &message)) send_message(&message, wrong);
    } else {
        fprintf(stderr, "usage: worker enqueue N | run [--wrong]\n");
        return 64;
    }
    sqlite3_close(db);
    return 0;
}
