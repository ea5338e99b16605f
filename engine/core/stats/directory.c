/* The segment's directory (docs/segment.md 2): every scope, statistic and event of the catalogue as
 * lines of text. */
#include <stdio.h>
#include <stdlib.h>

#include "stats/segment.h"

#define KIND_COUNTER "counter"
#define KIND_GAUGE "gauge"
#define KIND_SIGNED "signed"
#define KIND_PEAK "peak"
#define KIND_HISTOGRAM "histogram"
#define SEVERITY_INFO "info"
#define SEVERITY_WARNING "warning"
#define SEVERITY_ERROR "error"

typedef struct helio_cell_shape {
    const char *cell;
    size_t offset;
    const char *kind;
    bool histogram;
    const char *unit;
    int level;
    const char *statistic;
    const char *label;
    const char *value;
    const char *help;
} helio_cell_shape;

enum { COUNTER, GAUGE, SIGNED, PEAK, HISTOGRAM };

/* RECORD is the struct the cells are in; each table names its own. */
#define X(cell, kind, unit, level, statistic, label, value, help) \
    {#cell,       offsetof(RECORD, cell),                         \
     KIND_##kind, kind == HISTOGRAM,                              \
     unit,        level,                                          \
     statistic,   label,                                          \
     value,       help},
#define RECORD helio_instance_stats
static const helio_cell_shape instance_cells[] = {HELIO_STATS_INSTANCE(X)};
#undef RECORD
#define RECORD helio_tx_stream_stats
static const helio_cell_shape tx_stream_cells[] = {HELIO_STATS_TX_STREAM(X)};
#undef RECORD
#define RECORD helio_transmitter_stats
static const helio_cell_shape transmitter_cells[] = {HELIO_STATS_TRANSMITTER(X)};
#undef RECORD
#define RECORD helio_tx_receiver_stats
static const helio_cell_shape tx_receiver_cells[] = {HELIO_STATS_TX_RECEIVER(X)};
#undef RECORD
#define RECORD helio_rx_stream_stats
static const helio_cell_shape rx_stream_cells[] = {HELIO_STATS_RX_STREAM(X)};
#undef RECORD
#define RECORD helio_receiver_stats
static const helio_cell_shape receiver_cells[] = {HELIO_STATS_RECEIVER(X)};
#undef RECORD
#define RECORD helio_detail_stats
static const helio_cell_shape detail_cells[] = {HELIO_STATS_DETAIL(X)};
#undef RECORD
#define RECORD helio_incident_stats
static const helio_cell_shape incident_cells[] = {HELIO_STATS_INCIDENT(X)};
#undef RECORD
#define RECORD helio_loss_stats
static const helio_cell_shape loss_cells[] = {HELIO_STATS_LOSS(X)};
#undef RECORD
#define RECORD helio_store_stats
static const helio_cell_shape store_cells[] = {HELIO_STATS_STORE(X)};
#undef RECORD
#define RECORD helio_store_stream_stats
static const helio_cell_shape store_stream_cells[] = {HELIO_STATS_STORE_STREAM(X)};
#undef RECORD
#define RECORD helio_store_subscription_stats
static const helio_cell_shape store_subscription_cells[] = {HELIO_STATS_STORE_SUBSCRIPTION(X)};
#undef RECORD
#define RECORD helio_follower_stats
static const helio_cell_shape follower_cells[] = {HELIO_STATS_FOLLOWER(X)};
#undef RECORD
#undef X

typedef struct helio_scope_table {
    const char *name;
    int id;
    size_t record_bytes;
    const char *labels;
    const char *info;
    const char *help;
    const helio_cell_shape *cells;
    size_t cells_count;
} helio_scope_table;

static const helio_scope_table scopes[] = {
#define X(SCOPE, scope, id, labels, info, help) \
    {#scope,                                    \
     id,                                        \
     sizeof(helio_##scope##_stats),             \
     labels,                                    \
     info,                                      \
     help,                                      \
     scope##_cells,                             \
     sizeof scope##_cells / sizeof scope##_cells[0]},
    HELIO_SCOPES(X)
#undef X
};
enum { SCOPES_COUNT = sizeof scopes / sizeof scopes[0] };

static void write_scope(FILE *out, const helio_scope_table *scope) {
    fprintf(out, "scope\t%s\t%d\t%zu\t%s\t%s\t%s\n", scope->name, scope->id, scope->record_bytes,
            scope->labels, scope->info, scope->help);
    for (size_t i = 0; i < scope->cells_count; i++) {
        const helio_cell_shape *cell = &scope->cells[i];
        fprintf(out, "stat\t%s\t%s\t%zu\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", scope->name, cell->cell,
                cell->offset, cell->kind, cell->unit, cell->level, cell->statistic, cell->label,
                cell->value, cell->help);
    }
}

char *helio_directory_text(size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out) {
        return NULL;
    }
    for (size_t i = 0; i < SCOPES_COUNT; i++) {
        write_scope(out, &scopes[i]);
    }
#define X(NAME, name, id, SEVERITY, arguments, help) \
    fprintf(out, "event\t%s\t%d\t%s\t%s\t%s\n", #name, id, SEVERITY_##SEVERITY, arguments, help);
    HELIO_EVENTS(X)
#undef X
    const bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

void helio_scope_shapes(helio_scope_shape shapes[HELIO_SCOPES_END]) {
    for (size_t i = 0; i < SCOPES_COUNT; i++) {
        helio_scope_shape *shape = &shapes[scopes[i].id];
        *shape = (helio_scope_shape){.record_bytes = scopes[i].record_bytes};
        for (size_t c = 0; c < scopes[i].cells_count; c++) {
            const helio_cell_shape *cell = &scopes[i].cells[c];
            if (cell->histogram) {
                shape->histogram[shape->histograms].cell = cell->offset;
                shape->histogram[shape->histograms++].level = cell->level;
            }
        }
    }
}
