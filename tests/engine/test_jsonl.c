/* The module jsonl: what it writes, and what it does when nobody takes it. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <heliograph/module.h>

#include "jsonl_out.h"
#include "jsonl_text.h"

#define SECOND_NS INT64_C(1000000000)

static char folder[64], path[96], told[512];
static unsigned long long lost;

static void on_log(void *context, uint32_t severity, const char *text) {
    (void)context, (void)severity;
    snprintf(told, sizeof told, "%s", text);
}

static void on_error(void *context, const char *text) {
    on_log(context, HELIO_MODULE_ERROR, text);
}

static void on_lost(void *context, uint64_t count) {
    (void)context;
    lost += count;
}

static const helio_module_host host = {
    .size = sizeof host, .abi = 1, .log = on_log, .error = on_error, .lost = on_lost};

/* Opens the module; NULL when it refuses. */
static void *opened(const helio_module *module, const char *format, const char *where) {
    char options[256];
    void *state = NULL;
    told[0] = 0;
    lost = 0;
    snprintf(options, sizeof options, format, where);
    return module->open(options, &host, &state) == 0 ? state : NULL;
}

static helio_module_text text_of(const char *text) {
    return (helio_module_text){text, strlen(text)};
}

/* A schema of one scope, and a snapshot of one object. */
typedef struct given {
    helio_module_cell cells[3];
    const helio_module_cell *cell_list[3];
    helio_module_text labels[1];
    helio_module_scope scope;
    const helio_module_scope *scopes[1];
    helio_module_event_kind kind;
    const helio_module_event_kind *kinds[1];
    helio_module_schema schema;
    helio_module_text label_values[1];
    uint64_t values[3];
    uint8_t valid[3];
    uint32_t index[2];
    uint64_t counts[2];
    helio_module_histogram histogram;
    const helio_module_histogram *histograms[1];
    helio_module_object object;
    const helio_module_object *objects[1];
    helio_module_instance instance;
    const helio_module_instance *instances[1];
    helio_module_snapshot snapshot;
} given;

static void give(given *g) {
    *g = (given){
        .cells = {{.size = sizeof g->cells[0],
                   .name = text_of("messages"),
                   .kind = HELIO_MODULE_COUNTER},
                  {.size = sizeof g->cells[0],
                   .name = text_of("latency"),
                   .kind = HELIO_MODULE_HISTOGRAM},
                  {.size = sizeof g->cells[0],
                   .name = text_of("offset"),
                   .kind = HELIO_MODULE_SIGNED}},
        .labels = {text_of("topic")},
        .kind = {.size = sizeof g->kind, .id = 6, .name = text_of("packets_lost")},
        .label_values = {text_of("A\"B\\\n\xC3\xA9")},
        .values = {18446744073709551615u, 0, 0 - UINT64_C(5)},
        .valid = {1, 0, 1},
        .index = {3, 900},
        .counts = {5, 1},
    };
    g->cell_list[0] = &g->cells[0];
    g->cell_list[1] = &g->cells[1];
    g->cell_list[2] = &g->cells[2];
    g->scope = (helio_module_scope){.size = sizeof g->scope,
                                    .id = 4,
                                    .name = text_of("receiver"),
                                    .label_count = 1,
                                    .labels = g->labels,
                                    .cell_count = 3,
                                    .cells = g->cell_list};
    g->scopes[0] = &g->scope;
    g->kinds[0] = &g->kind;
    g->schema = (helio_module_schema){.size = sizeof g->schema,
                                      .scope_count = 1,
                                      .scopes = g->scopes,
                                      .event_kind_count = 1,
                                      .event_kinds = g->kinds};
    g->histogram = (helio_module_histogram){.size = sizeof g->histogram,
                                            .cell = 1,
                                            .digits = 3,
                                            .lowest = 1,
                                            .highest = 60,
                                            .above = 2,
                                            .negative = 1,
                                            .total_ns = 77,
                                            .count = 2,
                                            .index = g->index,
                                            .counts = g->counts};
    g->histograms[0] = &g->histogram;
    g->object = (helio_module_object){.size = sizeof g->object,
                                      .flags = HELIO_MODULE_LIVE,
                                      .created_ns = 9,
                                      .label_count = 1,
                                      .labels = g->label_values,
                                      .value_count = 3,
                                      .values = g->values,
                                      .valid = g->valid,
                                      .histogram_count = 1,
                                      .histograms = g->histograms};
    g->objects[0] = &g->object;
    g->instance = (helio_module_instance){.size = sizeof g->instance,
                                          .name = text_of("alpha"),
                                          .health = text_of("live"),
                                          .reason = text_of(""),
                                          .pid = 12,
                                          .incarnation = 0xABC,
                                          .object_count = 1,
                                          .objects = g->objects};
    g->instances[0] = &g->instance;
    g->snapshot = (helio_module_snapshot){.size = sizeof g->snapshot,
                                          .time_ns = 1000,
                                          .number = 4,
                                          .dropped = 1,
                                          .events_missed = 2,
                                          .instance_count = 1,
                                          .instances = g->instances};
}

static const char *content(const char *where) {
    static char bytes[1 << 16];
    const int file = open(where, O_RDONLY);
    const ssize_t length = file < 0 ? -1 : read(file, bytes, sizeof bytes - 1);
    CHECK(length >= 0);
    close(file);
    bytes[length] = 0;
    return bytes;
}

static int lines_of(const char *text) {
    int lines = 0;
    for (; *text; text++) {
        lines += *text == '\n';
    }
    return lines;
}

static void a_snapshot_is_a_line_for_itself_each_instance_and_each_object(void) {
    const helio_module *module = helio_module_entry(HELIO_MODULE_ABI);
    given g;
    give(&g);
    void *state = opened(module, "path=%s", path);
    CHECK(state);
    CHECK_EQUAL(module->describe(state, &g.schema), 0);
    memset(g.cells, 0, sizeof g.cells); /* the schema was ours during the call only */
    CHECK_EQUAL(module->snapshot(state, &g.snapshot), 0);
    module->close(state);
    const char *expected =
        "{\"what\":\"snapshot\",\"time_ns\":1000,\"number\":4,\"dropped\":1,\"events_missed\":2,"
        "\"instances\":1}\n"
        "{\"what\":\"instance\",\"time_ns\":1000,\"number\":4,\"instance\":\"alpha\","
        "\"incarnation\":"
        "\"0000000000000abc\",\"health\":\"live\",\"reason\":\"\",\"pid\":12,\"started_ns\":0,"
        "\"heartbeat_ns\":0,"
        "\"objects\":1}\n"
        "{\"what\":\"object\",\"time_ns\":1000,\"number\":4,\"instance\":\"alpha\",\"incarnation\":"
        "\"0000000000000abc\",\"scope\":\"receiver\",\"created_ns\":9,\"live\":true,\"torn\":false,"
        "\"labels\":{"
        "\"topic\":\"A\\\"B\\\\\\u000a\xC3\xA9\"},\"info\":{},\"values\":{\"messages\":"
        "18446744073709551615,\"offset\":-5},"
        "\"histograms\":{\"latency\":{\"digits\":3,\"lowest\":1,\"highest\":60,\"above\":2,"
        "\"negative\":1,"
        "\"total_ns\":77,\"cells\":[[3,5],[900,1]]}}}\n";
    CHECK(strcmp(content(path), expected) == 0);
    CHECK_EQUAL(lost, 0);
    unlink(path);
}

static void an_audit_has_events_and_topics_only(void) {
    const helio_module *module = helio_module_entry(HELIO_MODULE_ABI);
    given g;
    give(&g);
    void *state = opened(module, "path=%s,events-only", path);
    CHECK(state);
    module->describe(state, &g.schema);
    module->snapshot(state, &g.snapshot);
    const helio_module_pair label = {text_of("stream"), text_of("s1")};
    const helio_module_argument argument = {text_of("packets"), 3};
    const helio_module_event event = {.size = sizeof event,
                                      .time_ns = 5,
                                      .number = 8,
                                      .instance = text_of("alpha"),
                                      .name = text_of("packets_lost"),
                                      .severity = HELIO_MODULE_ERROR,
                                      .label_count = 1,
                                      .labels = &label,
                                      .argument_count = 1,
                                      .arguments = &argument,
                                      .text = text_of("3 lost")};
    const helio_module_topic topic = {.size = sizeof topic,
                                      .time_ns = 6,
                                      .instance = text_of("alpha"),
                                      .topic = text_of("A"),
                                      .stream = text_of("s1"),
                                      .endpoint = text_of("e"),
                                      .direction = HELIO_MODULE_RECEIVE};
    CHECK_EQUAL(module->event(state, &event), 0);
    CHECK_EQUAL(module->topic_destroyed(state, &topic), 0);
    module->close(state);
    CHECK(
        strcmp(content(path),
               "{\"what\":\"event\",\"time_ns\":5,\"instance\":\"alpha\",\"incarnation\":"
               "\"0000000000000000\","
               "\"number\":8,\"id\":6,\"name\":\"packets_lost\",\"severity\":\"error\",\"labels\":{"
               "\"stream\":"
               "\"s1\"},\"arguments\":{\"packets\":3},\"text\":\"3 lost\"}\n"
               "{\"what\":\"topic_destroyed\",\"time_ns\":6,\"instance\":\"alpha\",\"incarnation\":"
               "\"0000000000000000\",\"direction\":\"receive\",\"topic\":\"A\",\"stream\":\"s1\","
               "\"endpoint\":\"e\"}\n") == 0);
    unlink(path);
}

static void values_have_a_rate_and_what_is_over_it_is_counted(void) {
    const helio_module *module = helio_module_entry(HELIO_MODULE_ABI);
    given g;
    give(&g);
    void *state = opened(module, "histograms=off,rate=2,path=%s", path);
    CHECK(state);
    module->describe(state, &g.schema);
    for (int i = 0; i < 5; i++) {
        module->snapshot(state, &g.snapshot);
    }
    module->close(state);
    CHECK(lines_of(content(path)) >= 2);
    CHECK_EQUAL((unsigned long long)lines_of(content(path)) + lost, 15);
    CHECK(!strstr(content(path), "histograms"));
    unlink(path);
}

static void options_that_cannot_be_are_named(void) {
    static const char *const wrong[][2] = {
        {"", "give either path=FILE or to=ADDRESS"},
        {"path=/tmp/x,to=tcp://a:1", "give either"},
        {"colour=red", "there is no option 'colour=red'"},
        {"path=/proc/nowhere/x", "/proc/nowhere/x: cannot be opened"},
        {"to=http://a", "to=http://a: it must be tcp://HOST:PORT"},
        {"to=tcp://nowhere", "must be"},
        {"to=unix://relative", "must be"},
        {"path=/tmp/x,rate=0", "rate=0"},
        {"path=/tmp/x,rate=-1", "rate=-1"},
    };
    const helio_module *module = helio_module_entry(HELIO_MODULE_ABI);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!opened(module, "%s", wrong[i][0]));
        if (!strstr(told, wrong[i][1])) {
            CHECK_FAIL("%s: %s", wrong[i][0], told);
        }
    }
    CHECK(helio_module_entry(0) == NULL);
}

static void texts_are_json_whatever_is_in_them(void) {
    jsonl_text text = {0};
    const char raw[] = "a\"\\\x01\x7F\xC3\xA9\xF0\x9F\x98\x80\xC3(\xED\xA0\x80\xC0\x80\xFF\xF8";
    jsonl_string(&text, raw, sizeof raw); /* its NUL too */
    CHECK(jsonl_end_line(&text));
    static const char bad[] = "\xEF\xBF\xBD";
    char expected[256];
    snprintf(expected, sizeof expected,
             "\"a\\\"\\\\\\u0001\\u007f\xC3\xA9\xF0\x9F\x98\x80%s(%s%s%s%s%s%s%s\\u0000\"\n", bad,
             bad, bad, bad, bad, bad, bad, bad);
    CHECK_EQUAL(text.used, strlen(expected));
    CHECK_BYTES(text.bytes, expected, text.used);
    jsonl_text_free(&text);
}

static void a_file_that_was_moved_away_is_opened_anew(void) {
    char moved[128];
    snprintf(moved, sizeof moved, "%s.1", path);
    jsonl_out out;
    CHECK(jsonl_out_open(&out, path, NULL));
    jsonl_out_write(&out, "one\n", 4, SECOND_NS);
    CHECK_EQUAL(rename(path, moved), 0);
    jsonl_out_write(&out, "two\n", 4, SECOND_NS + 1); /* the place is looked at once a second */
    jsonl_out_write(&out, "three\n", 6, 2 * SECOND_NS + 2);
    jsonl_out_close(&out);
    CHECK(strcmp(content(moved), "one\ntwo\n") == 0);
    CHECK(strcmp(content(path), "three\n") == 0);
    CHECK_EQUAL(out.lost, 0);
    unlink(path);
    unlink(moved);
}

static void a_full_disk_loses_lines_and_says_so(void) {
    jsonl_out out;
    if (access("/dev/full", W_OK) != 0) {
        return; /* no such device here */
    }
    CHECK(jsonl_out_open(&out, "/dev/full", NULL));
    jsonl_out_write(&out, "one\ntwo\n", 8, SECOND_NS);
    CHECK_EQUAL(out.lost, 2);
    CHECK(strstr(out.error, "/dev/full: cannot be written: No space left"));
    jsonl_out_close(&out);
}

static int listening(const char *where) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", where);
    const int found = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(found >= 0 && bind(found, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK_EQUAL(listen(found, 4), 0);
    return found;
}

static void a_peer_that_comes_late_gets_what_waited(void) {
    char place[128];
    snprintf(place, sizeof place, "unix://%s", path);
    jsonl_out out;
    CHECK(jsonl_out_open(&out, NULL, place));
    jsonl_out_write(&out, "one\n", 4, SECOND_NS);
    CHECK(strstr(out.error, "cannot be reached"));
    const int listener = listening(path);
    jsonl_out_write(&out, "two\n", 4, SECOND_NS + 1); /* not tried again before a second is over */
    CHECK_EQUAL(out.descriptor, -1);
    jsonl_out_write(&out, "three\n", 6, 2 * SECOND_NS + 2);
    const int peer = accept(listener, NULL, NULL);
    char bytes[64] = "";
    CHECK_EQUAL(read(peer, bytes, sizeof bytes), 14);
    CHECK_BYTES(bytes, "one\ntwo\nthree\n", 14);
    CHECK_EQUAL(out.error[0], 0);

    close(peer); /* it hangs up and comes back: the line it did not take is sent to it */
    jsonl_out_write(&out, "four\n", 5, 3 * SECOND_NS);
    jsonl_out_write(&out, "five\n", 5, 4 * SECOND_NS + 4);
    const int again = accept(listener, NULL, NULL);
    const ssize_t got = read(again, bytes, sizeof bytes);
    CHECK(got >= 5 && memcmp(bytes + got - 5, "five\n", 5) == 0);
    jsonl_out_close(&out);
    close(again);
    close(listener);
    unlink(path);
}

static void a_peer_that_does_not_read_costs_whole_lines_and_nobody_waits(void) {
    enum { LINE = 1000, LINES = 6000 };
    char place[128], line[LINE];
    snprintf(place, sizeof place, "unix://%s", path);
    memset(line, 'x', sizeof line);
    line[LINE - 1] = '\n';
    const int listener = listening(path);
    jsonl_out out;
    CHECK(jsonl_out_open(&out, NULL, place));
    for (int i = 0; i < LINES; i++) {
        jsonl_out_write(&out, line, LINE, SECOND_NS);
    }
    CHECK(out.lost > 0);
    CHECK(strstr(out.error, "does not take lines as fast as they come"));
    const uint64_t lost_so_far = out.lost;
    const size_t waiting = out.end - out.begin;
    CHECK_EQUAL(waiting % LINE, 0);
    jsonl_out_close(&out);
    CHECK_EQUAL(out.lost, lost_so_far + waiting / LINE);

    /* What it did take are whole lines, but for the last, which it never got the rest of. */
    const int peer = accept(listener, NULL, NULL);
    static char bytes[LINE * LINES];
    size_t got = 0;
    for (ssize_t n; (n = read(peer, bytes + got, sizeof bytes - got)) > 0;) {
        got += (size_t)n;
    }
    CHECK(got / LINE + out.lost == LINES);
    close(peer);
    close(listener);
    unlink(path);
}

static void datagrams_are_lines(void) {
    jsonl_out out;
    CHECK(jsonl_out_open(&out, NULL, "udp://127.0.0.1:9"));
    jsonl_out_write(&out, "one\n", 4, SECOND_NS);
    CHECK(out.descriptor >= 0);
    static char line[70000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    out.lost = 0;
    jsonl_out_write(&out, line, sizeof line, SECOND_NS);
    CHECK_EQUAL(out.lost, 1); /* longer than a datagram can be */
    jsonl_out_close(&out);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/helio-test-jsonl-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/out", folder);
    if (mkdir(folder, 0700) != 0) {
        perror(folder);
        return 1;
    }
    RUN(a_snapshot_is_a_line_for_itself_each_instance_and_each_object);
    RUN(an_audit_has_events_and_topics_only);
    RUN(values_have_a_rate_and_what_is_over_it_is_counted);
    RUN(options_that_cannot_be_are_named);
    RUN(texts_are_json_whatever_is_in_them);
    RUN(a_file_that_was_moved_away_is_opened_anew);
    RUN(a_full_disk_loses_lines_and_says_so);
    RUN(a_peer_that_comes_late_gets_what_waited);
    RUN(a_peer_that_does_not_read_costs_whole_lines_and_nobody_waits);
    RUN(datagrams_are_lines);
    if (rmdir(folder) != 0) {
        perror(folder);
        return 1; /* something was left behind */
    }
    return check_result();
}
