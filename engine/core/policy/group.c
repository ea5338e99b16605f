#include "policy/group.h"

#include <math.h>

/* A normal distribution's standard deviation is so many median absolute deviations. */
#define DEVIATIONS 1.4826
#define FAR 4.0

static void swap(double *a, double *b) {
    const double t = *a;
    *a = *b;
    *b = t;
}

/* Quickselect; the pivot is the middle of three, so that ordered and equal values are no trap. */
static double select_nth(double *values, uint32_t count, uint32_t n) {
    uint32_t first = 0, last = count - 1;
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2;
        if (values[middle] < values[first]) {
            swap(&values[middle], &values[first]);
        }
        if (values[last] < values[first]) {
            swap(&values[last], &values[first]);
        }
        if (values[last] < values[middle]) {
            swap(&values[last], &values[middle]);
        }
        const double pivot = values[middle];
        uint32_t i = first, j = last;
        while (i <= j) {
            while (values[i] < pivot) {
                i++;
            }
            while (values[j] > pivot) {
                j--;
            }
            if (i > j) {
                break;
            }
            swap(&values[i++], &values[j]);
            if (j-- == 0) {
                break;
            }
        }
        if (n <= j && j < last) {
            last = j;
        } else if (n >= i) {
            first = i;
        } else {
            break;
        }
    }
    return values[n];
}

double helio_median(double *values, uint32_t count) {
    return count ? select_nth(values, count, (count - 1) / 2) : 0;
}

void helio_group_set(helio_group *group, helio_symptom symptom, double *values, uint32_t count) {
    const double median = helio_median(values, count);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = fabs(values[i] - median);
    }
    group->median[symptom] = median;
    group->deviation[symptom] = helio_median(values, count);
}

bool helio_group_is_apart(const helio_group *group, helio_symptom symptom, double value) {
    if (group->members < HELIO_GROUP_LEAST) {
        return true;
    }
    const double median = group->median[symptom];
    /* Of these it can have all there is: it has less than half as much room as is usual. */
    if (symptom == HELIO_SYMPTOM_LAG || symptom == HELIO_SYMPTOM_BUFFER) {
        return 1 - value < (1 - median) / 2;
    }
    return value > 2 * median + FAR * DEVIATIONS * group->deviation[symptom];
}
