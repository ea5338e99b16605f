#include "policy/window.h"

#include <stdbool.h>

enum { PROGRESS_PART = 4 };

static bool counts(const helio_window_config *config, const helio_receiver_view *view,
                   int64_t now_ns) {
    const uint32_t wanted = HELIO_VIEW_PRESENT | HELIO_VIEW_REPORTS |
                            (config->rule == HELIO_WINDOW_TAGGED ? HELIO_VIEW_TAGGED : 0);
    const uint32_t unwanted = HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED | HELIO_VIEW_LEFT;
    return (view->flags & wanted) == wanted && !(view->flags & unwanted) && view->position > 0 &&
           now_ns - view->heard_ns < config->silence_ns;
}

helio_window_limit helio_window_limit_of(const helio_window_config *config,
                                         const helio_receiver_view *views, uint32_t entries,
                                         uint64_t lead, int64_t now_ns) {
    helio_window_limit limit = {.sequence = HELIO_WINDOW_NO_LIMIT, .index = UINT32_MAX};
    uint32_t count = 0, least_window = UINT32_MAX;
    for (helio_receiver_index index = 0; index < entries; index++) {
        const helio_receiver_view *view = &views[index];
        if (!counts(config, view, now_ns)) {
            continue;
        }
        const uint64_t sequence = view->position + view->window;
        const bool is_looser = config->rule == HELIO_WINDOW_MAX && sequence > limit.sequence;
        const bool is_tighter = config->rule != HELIO_WINDOW_MAX && sequence < limit.sequence;
        if (count++ == 0 || is_looser || is_tighter) {
            limit.sequence = sequence;
            limit.index = index;
        }
        if (view->window < least_window) {
            least_window = view->window;
        }
    }
    limit.is_short = count < config->least;
    if (limit.is_short) {
        limit.sequence = lead;
    }
    if (count > 0) {
        limit.progress = least_window / PROGRESS_PART > 0 ? least_window / PROGRESS_PART : 1;
    }
    return limit;
}
