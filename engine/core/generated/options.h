/* Generated from engine/catalogue/options.toml by generate.py; do not edit. */
/* clang-format off */
#ifndef HELIO_GENERATED_OPTIONS_H
#define HELIO_GENERATED_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    HELIO_MODE_THREAD,
    HELIO_MODE_POLL,
} helio_option_mode;

typedef enum {
    HELIO_IDLE_SPIN,
    HELIO_IDLE_YIELD,
    HELIO_IDLE_BACKOFF,
    HELIO_IDLE_BLOCK,
} helio_option_idle;

typedef enum {
    HELIO_STATS_SEGMENT,
    HELIO_STATS_MEMORY,
} helio_option_stats;

typedef enum {
    HELIO_PROFILE_STANDARD,
    HELIO_PROFILE_LAN_LATENCY,
    HELIO_PROFILE_LAN_THROUGHPUT,
    HELIO_PROFILE_WAN,
    HELIO_PROFILE_MANY_RECEIVERS,
} helio_option_profile;

typedef enum {
    HELIO_GSO_AUTO,
    HELIO_GSO_OFF,
} helio_option_gso;

typedef enum {
    HELIO_GRO_AUTO,
    HELIO_GRO_OFF,
} helio_option_gro;

typedef enum {
    HELIO_ENCAPSULATION_UDP,
    HELIO_ENCAPSULATION_IP,
} helio_option_encapsulation;

typedef enum {
    HELIO_PAYLOAD_HELIOGRAPH,
    HELIO_PAYLOAD_RAW,
} helio_option_payload;

typedef enum {
    HELIO_HISTORY_STATIC,
    HELIO_HISTORY_DYNAMIC,
} helio_option_history;

typedef enum {
    HELIO_OVERFLOW_BLOCK,
    HELIO_OVERFLOW_DROP_NEWEST,
    HELIO_OVERFLOW_DROP_OLDEST,
    HELIO_OVERFLOW_CONFLATE,
    HELIO_OVERFLOW_PRIORITY,
    HELIO_OVERFLOW_REFUSE,
} helio_option_overflow;

typedef enum {
    HELIO_RATE_POLICY_NONE,
    HELIO_RATE_POLICY_STATIC,
    HELIO_RATE_POLICY_DYNAMIC,
    HELIO_RATE_POLICY_PGMCC,
} helio_option_rate_policy;

typedef enum {
    HELIO_RATE_MODE_ENFORCE,
    HELIO_RATE_MODE_ADVISE,
    HELIO_RATE_MODE_OBSERVE,
} helio_option_rate_mode;

typedef enum {
    HELIO_FLOW_WINDOW_NONE,
    HELIO_FLOW_WINDOW_MAX,
    HELIO_FLOW_WINDOW_MIN,
    HELIO_FLOW_WINDOW_TAGGED,
} helio_option_flow_window;

typedef enum {
    HELIO_RATE_RECEIVERS_WORST,
    HELIO_RATE_RECEIVERS_QUANTILE,
    HELIO_RATE_RECEIVERS_TAGGED,
} helio_option_rate_receivers;

typedef enum {
    HELIO_ACKS_FROM_RECEIVERS,
    HELIO_ACKS_FROM_STORES,
} helio_option_acks_from;

typedef enum {
    HELIO_ACKS_MISSING_BLOCK,
    HELIO_ACKS_MISSING_DEGRADE,
    HELIO_ACKS_MISSING_FAIL,
} helio_option_acks_missing;

typedef enum {
    HELIO_UNSTABLE_ACTION_BLOCK,
    HELIO_UNSTABLE_ACTION_REFUSE,
    HELIO_UNSTABLE_ACTION_REPORT,
} helio_option_unstable_action;

typedef enum {
    HELIO_SLOW_MODE_OBSERVE,
    HELIO_SLOW_MODE_ADVISE,
    HELIO_SLOW_MODE_ENFORCE,
} helio_option_slow_mode;

typedef enum {
    HELIO_SLOW_ACTION_NOTIFY,
    HELIO_SLOW_ACTION_PACE,
    HELIO_SLOW_ACTION_SHED,
    HELIO_SLOW_ACTION_SUSPEND_NAKS,
    HELIO_SLOW_ACTION_SUSPEND,
    HELIO_SLOW_ACTION_EXPEL,
} helio_option_slow_action;

typedef enum {
    HELIO_STORM_MODE_OBSERVE,
    HELIO_STORM_MODE_ADVISE,
    HELIO_STORM_MODE_ENFORCE,
} helio_option_storm_mode;

typedef enum {
    HELIO_ACK_NONE,
    HELIO_ACK_AUTO,
    HELIO_ACK_APP,
    HELIO_ACK_STORE,
} helio_option_ack;

typedef enum {
    HELIO_JOIN_AUTO,
    HELIO_JOIN_LIVE,
    HELIO_JOIN_HISTORY,
    HELIO_JOIN_STORE,
} helio_option_join;

typedef enum {
    HELIO_RECOVER_SOURCE,
    HELIO_RECOVER_STORE,
} helio_option_recover;

typedef enum {
    HELIO_NAK_ON,
    HELIO_NAK_OFF,
} helio_option_nak;

typedef enum {
    HELIO_ORDER_STREAM,
    HELIO_ORDER_ARRIVAL,
} helio_option_order;

/* Options of transmitters and receivers.  Durations are in ns. */
typedef struct helio_stream_options {
    helio_option_profile profile;
    char *interface;
    uint64_t mtu;
    uint64_t socket_buffer;
    helio_option_encapsulation encapsulation;
    helio_option_payload payload;
    int64_t connection_timeout_ns;
    helio_option_overflow overflow;
    uint64_t queue_messages;
    int64_t queue_age_ns;
    double low_water;
    uint64_t key_offset;
    uint64_t key_bytes;
    int64_t priority_offset;
    double queue_high;
    double queue_low;
    uint64_t max_message_bytes;
    struct {
        bool profile;
        bool interface;
        bool mtu;
        bool socket_buffer;
        bool encapsulation;
        bool payload;
        bool connection_timeout;
        bool overflow;
        bool queue_messages;
        bool queue_age;
        bool low_water;
        bool key_offset;
        bool key_bytes;
        bool priority_offset;
        bool queue_high;
        bool queue_low;
        bool max_message_bytes;
    } given;
} helio_stream_options;

typedef struct helio_instance_options {
    char *name;
    char *build;
    helio_option_mode mode;
    helio_option_idle idle;
    int64_t cpu;
    uint64_t priority;
    bool lock_memory;
    helio_option_stats stats;
    char *segment_dir;
    uint64_t segment_bytes;
    uint64_t level;
    uint64_t sample;
    int64_t hiccup_interval_ns;
    uint64_t event_rate;
    uint64_t rate;
    uint64_t memory_limit;
    double memory_high;
    double memory_low;
    uint64_t history_limit_bytes;
    char *decision_log;
    uint64_t decision_log_bytes;
    uint64_t flight_bytes;
    int64_t flight_interval_ns;
    char *flight_freeze;
    uint64_t flight_keep;
    helio_option_profile profile;
    struct {
        bool name;
        bool build;
        bool mode;
        bool idle;
        bool cpu;
        bool priority;
        bool lock_memory;
        bool stats;
        bool segment_dir;
        bool segment_bytes;
        bool level;
        bool sample;
        bool hiccup_interval;
        bool event_rate;
        bool rate;
        bool memory_limit;
        bool memory_high;
        bool memory_low;
        bool history_limit_bytes;
        bool decision_log;
        bool decision_log_bytes;
        bool flight_bytes;
        bool flight_interval;
        bool flight_freeze;
        bool flight_keep;
        bool profile;
    } given;
} helio_instance_options;

typedef struct helio_transmitter_options {
    helio_stream_options stream;
    uint64_t rate;
    uint64_t ttl;
    helio_option_gso gso;
    bool router_alert;
    bool upstream;
    uint64_t ring_packets;
    bool ring_wait;
    bool huge_pages;
    int64_t connect_wait_ns;
    uint64_t send_backlog;
    uint64_t send_window;
    helio_option_history history;
    uint64_t history_bytes;
    int64_t history_time_ns;
    bool late_join;
    uint64_t first_sequence;
    uint64_t submit_queue;
    bool await_credit;
    int64_t linger_ns;
    int64_t heartbeat_min_ns;
    int64_t heartbeat_max_ns;
    int64_t ambient_interval_ns;
    int64_t announce_interval_ns;
    int64_t poll_interval_ns;
    int64_t report_interval_ns;
    uint64_t report_rate;
    helio_option_rate_policy rate_policy;
    uint64_t rate_min;
    uint64_t rate_burst;
    int64_t congestion_time_ns;
    double repair_share;
    helio_option_rate_mode rate_mode;
    helio_option_flow_window flow_window;
    uint64_t window_receivers;
    int64_t window_silence_ns;
    double loss_high;
    double loss_low;
    helio_option_rate_receivers rate_receivers;
    double rate_quantile;
    int64_t control_interval_ns;
    uint64_t acks;
    helio_option_acks_from acks_from;
    helio_option_acks_missing acks_missing;
    uint64_t unstable_messages;
    uint64_t unstable_bytes;
    helio_option_unstable_action unstable_action;
    uint64_t nak_limit;
    uint64_t ack_limit;
    uint64_t repair_limit;
    double repair_budget;
    helio_option_slow_mode slow_mode;
    helio_option_slow_action slow_action;
    bool slow_wait;
    double slow_loss;
    double slow_naks;
    double slow_lag;
    double slow_buffer;
    int64_t slow_dwell_ns;
    int64_t slow_lead_ns;
    int64_t suspend_time_ns;
    uint64_t expel_after;
    int64_t expel_time_ns;
    double expel_share;
    helio_option_storm_mode storm_mode;
    int64_t storm_time_ns;
    int64_t cutoff_time_ns;
    struct {
        bool rate;
        bool ttl;
        bool gso;
        bool router_alert;
        bool upstream;
        bool ring_packets;
        bool ring_wait;
        bool huge_pages;
        bool connect_wait;
        bool send_backlog;
        bool send_window;
        bool history;
        bool history_bytes;
        bool history_time;
        bool late_join;
        bool first_sequence;
        bool submit_queue;
        bool await_credit;
        bool linger;
        bool heartbeat_min;
        bool heartbeat_max;
        bool ambient_interval;
        bool announce_interval;
        bool poll_interval;
        bool report_interval;
        bool report_rate;
        bool rate_policy;
        bool rate_min;
        bool rate_burst;
        bool congestion_time;
        bool repair_share;
        bool rate_mode;
        bool flow_window;
        bool window_receivers;
        bool window_silence;
        bool loss_high;
        bool loss_low;
        bool rate_receivers;
        bool rate_quantile;
        bool control_interval;
        bool acks;
        bool acks_from;
        bool acks_missing;
        bool unstable_messages;
        bool unstable_bytes;
        bool unstable_action;
        bool nak_limit;
        bool ack_limit;
        bool repair_limit;
        bool repair_budget;
        bool slow_mode;
        bool slow_action;
        bool slow_wait;
        bool slow_loss;
        bool slow_naks;
        bool slow_lag;
        bool slow_buffer;
        bool slow_dwell;
        bool slow_lead;
        bool suspend_time;
        bool expel_after;
        bool expel_time;
        bool expel_share;
        bool storm_mode;
        bool storm_time;
        bool cutoff_time;
    } given;
} helio_transmitter_options;

typedef struct helio_receiver_options {
    helio_stream_options stream;
    helio_option_gro gro;
    double inject_loss;
    helio_option_ack ack;
    uint64_t ack_packets;
    uint64_t credit;
    bool tagged;
    uint64_t receive_window;
    helio_option_join join;
    char *join_from;
    helio_option_recover recover;
    char *stores;
    int64_t store_wait_ns;
    char *durable;
    uint64_t receive_bytes;
    uint64_t receive_queue;
    uint64_t reorder_packets;
    int64_t reorder_time_ns;
    helio_option_nak nak;
    helio_option_order order;
    uint64_t group_size;
    int64_t nak_backoff_ns;
    bool network_elements;
    char *service;
    char *share;
    char *repairer;
    char *repair_at;
    uint64_t repair_bytes;
    int64_t repair_time_ns;
    uint64_t repair_rate;
    uint64_t nak_retries;
    int64_t nak_deadline_ns;
    int64_t stream_expiry_ns;
    uint64_t max_streams;
    struct {
        bool gro;
        bool inject_loss;
        bool ack;
        bool ack_packets;
        bool credit;
        bool tagged;
        bool receive_window;
        bool join;
        bool join_from;
        bool recover;
        bool stores;
        bool store_wait;
        bool durable;
        bool receive_bytes;
        bool receive_queue;
        bool reorder_packets;
        bool reorder_time;
        bool nak;
        bool order;
        bool group_size;
        bool nak_backoff;
        bool network_elements;
        bool service;
        bool share;
        bool repairer;
        bool repair_at;
        bool repair_bytes;
        bool repair_time;
        bool repair_rate;
        bool nak_retries;
        bool nak_deadline;
        bool stream_expiry;
        bool max_streams;
    } given;
} helio_receiver_options;

/* X(name, part, member, TYPE, per_handle, low, high, default, choices joined by ',', unit) */
#define HELIO_INSTANCE_OPTIONS(X) \
    X(name, , name, STRING, false, 0.0, 0.0, "", "", "") \
    X(build, , build, STRING, false, 0.0, 0.0, "", "", "") \
    X(mode, , mode, CHOICE, false, 0.0, 0.0, "thread", "thread,poll", "") \
    X(idle, , idle, CHOICE, false, 0.0, 0.0, "backoff", "spin,yield,backoff,block", "") \
    X(cpu, , cpu, SIGNED, false, -1.0, 4095.0, "-1", "", "") \
    X(priority, , priority, UNSIGNED, false, 0.0, 99.0, "0", "", "") \
    X(lock_memory, , lock_memory, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(stats, , stats, CHOICE, false, 0.0, 0.0, "segment", "segment,memory", "") \
    X(segment_dir, , segment_dir, STRING, false, 0.0, 0.0, "", "", "") \
    X(segment_bytes, , segment_bytes, UNSIGNED, false, 1048576.0, 4294967296.0, "67108864", "", "bytes") \
    X(level, , level, UNSIGNED, false, 0.0, 3.0, "2", "", "") \
    X(sample, , sample, UNSIGNED, false, 1.0, 1000000.0, "1", "", "packets") \
    X(hiccup_interval, , hiccup_interval_ns, DURATION, false, 0.0, 1.0, "0.005", "", "seconds") \
    X(event_rate, , event_rate, UNSIGNED, false, 0.0, 1000000.0, "100", "", "events per second") \
    X(rate, , rate, UNSIGNED, false, 0.0, 100000000000.0, "0", "", "bytes") \
    X(memory_limit, , memory_limit, UNSIGNED, false, 0.0, 1099511627776.0, "0", "", "bytes") \
    X(memory_high, , memory_high, FLOAT, false, 0.0, 1.0, "0.85", "", "") \
    X(memory_low, , memory_low, FLOAT, false, 0.0, 1.0, "0.7", "", "") \
    X(history_limit_bytes, , history_limit_bytes, UNSIGNED, false, 0.0, 1099511627776.0, "0", "", "bytes") \
    X(decision_log, , decision_log, STRING, false, 0.0, 0.0, "", "", "") \
    X(decision_log_bytes, , decision_log_bytes, UNSIGNED, false, 65536.0, 17179869184.0, "16777216", "", "bytes") \
    X(flight_bytes, , flight_bytes, UNSIGNED, false, 0.0, 1073741824.0, "4194304", "", "bytes") \
    X(flight_interval, , flight_interval_ns, DURATION, false, 0.001, 60.0, "0.01", "", "seconds") \
    X(flight_freeze, , flight_freeze, STRING, false, 0.0, 0.0, "error,socket_drops,suspended,receiver_suspended,rate_floor", "", "") \
    X(flight_keep, , flight_keep, UNSIGNED, false, 0.0, 1000.0, "4", "", "recordings") \
    X(profile, , profile, CHOICE, false, 0.0, 0.0, "standard", "standard,lan-latency,lan-throughput,wan,many-receivers", "")

#define HELIO_TRANSMITTER_OPTIONS(X) \
    X(rate, , rate, UNSIGNED, false, 0.0, 100000000000.0, "0", "", "bytes") \
    X(profile, stream., profile, CHOICE, false, 0.0, 0.0, "standard", "standard,lan-latency,lan-throughput,wan,many-receivers", "") \
    X(interface, stream., interface, STRING, false, 0.0, 0.0, "", "", "") \
    X(ttl, , ttl, UNSIGNED, false, 0.0, 255.0, "1", "", "hops") \
    X(mtu, stream., mtu, UNSIGNED, false, 576.0, 65535.0, "1500", "", "bytes") \
    X(socket_buffer, stream., socket_buffer, UNSIGNED, false, 4096.0, 1073741824.0, "4194304", "", "bytes") \
    X(gso, , gso, CHOICE, false, 0.0, 0.0, "auto", "auto,off", "") \
    X(encapsulation, stream., encapsulation, CHOICE, false, 0.0, 0.0, "udp", "udp,ip", "") \
    X(router_alert, , router_alert, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(upstream, , upstream, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(payload, stream., payload, CHOICE, false, 0.0, 0.0, "heliograph", "heliograph,raw", "") \
    X(ring_packets, , ring_packets, UNSIGNED, false, 64.0, 1048576.0, "2048", "", "packets") \
    X(ring_wait, , ring_wait, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(huge_pages, , huge_pages, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(connection_timeout, stream., connection_timeout_ns, DURATION, false, 0.1, 3600.0, "10.0", "", "seconds") \
    X(connect_wait, , connect_wait_ns, DURATION, false, 0.0, 3600.0, "1.0", "", "seconds") \
    X(send_backlog, , send_backlog, UNSIGNED, false, 65536.0, 1073741824.0, "4194304", "", "bytes") \
    X(send_window, , send_window, UNSIGNED, false, 16.0, 4194304.0, "16384", "", "packets") \
    X(history, , history, CHOICE, false, 0.0, 0.0, "static", "static,dynamic", "") \
    X(history_bytes, , history_bytes, UNSIGNED, false, 0.0, 1099511627776.0, "0", "", "bytes") \
    X(history_time, , history_time_ns, DURATION, false, 0.0, 1000000.0, "0.0", "", "seconds") \
    X(late_join, , late_join, BOOLEAN, false, 0.0, 0.0, "true", "", "") \
    X(first_sequence, , first_sequence, UNSIGNED, false, 0.0, 4294967295.0, "0", "", "") \
    X(submit_queue, , submit_queue, UNSIGNED, true, 65536.0, 1073741824.0, "4194304", "", "bytes") \
    X(overflow, stream., overflow, CHOICE, true, 0.0, 0.0, "block", "block,drop_newest,drop_oldest,conflate,priority,refuse", "") \
    X(queue_messages, stream., queue_messages, UNSIGNED, true, 0.0, 16777216.0, "0", "", "messages") \
    X(queue_age, stream., queue_age_ns, DURATION, true, 0.0, 1000000.0, "0.0", "", "seconds") \
    X(low_water, stream., low_water, FLOAT, true, 0.0, 1.0, "1.0", "", "") \
    X(await_credit, , await_credit, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(key_offset, stream., key_offset, UNSIGNED, true, 0.0, 1073741824.0, "0", "", "bytes") \
    X(key_bytes, stream., key_bytes, UNSIGNED, true, 0.0, 255.0, "0", "", "bytes") \
    X(priority_offset, stream., priority_offset, SIGNED, true, -1.0, 1073741824.0, "-1", "", "bytes") \
    X(queue_high, stream., queue_high, FLOAT, true, 0.0, 1.0, "0.0", "", "") \
    X(queue_low, stream., queue_low, FLOAT, true, 0.0, 1.0, "0.0", "", "") \
    X(max_message_bytes, stream., max_message_bytes, UNSIGNED, false, 1.0, 1073741824.0, "67108864", "", "bytes") \
    X(linger, , linger_ns, DURATION, false, 0.0, 3600.0, "1.0", "", "seconds") \
    X(heartbeat_min, , heartbeat_min_ns, DURATION, false, 5e-05, 10.0, "0.0005", "", "seconds") \
    X(heartbeat_max, , heartbeat_max_ns, DURATION, false, 0.001, 300.0, "1.0", "", "seconds") \
    X(ambient_interval, , ambient_interval_ns, DURATION, false, 0.001, 300.0, "0.5", "", "seconds") \
    X(announce_interval, , announce_interval_ns, DURATION, false, 0.01, 300.0, "1.0", "", "seconds") \
    X(poll_interval, , poll_interval_ns, DURATION, false, 0.0, 3600.0, "0.0", "", "seconds") \
    X(report_interval, , report_interval_ns, DURATION, false, 0.0, 600.0, "0.1", "", "seconds") \
    X(report_rate, , report_rate, UNSIGNED, false, 1.0, 1000000.0, "1000", "", "reports/second") \
    X(rate_policy, , rate_policy, CHOICE, false, 0.0, 0.0, "none", "none,static,dynamic,pgmcc", "") \
    X(rate_min, , rate_min, UNSIGNED, false, 0.0, 100000000000.0, "0", "", "bytes") \
    X(rate_burst, , rate_burst, UNSIGNED, false, 0.0, 1073741824.0, "0", "", "bytes") \
    X(congestion_time, , congestion_time_ns, DURATION, false, 0.001, 3600.0, "0.05", "", "seconds") \
    X(repair_share, , repair_share, FLOAT, false, 0.01, 1.0, "0.25", "", "") \
    X(rate_mode, , rate_mode, CHOICE, false, 0.0, 0.0, "enforce", "enforce,advise,observe", "") \
    X(flow_window, , flow_window, CHOICE, false, 0.0, 0.0, "none", "none,max,min,tagged", "") \
    X(window_receivers, , window_receivers, UNSIGNED, false, 0.0, 65536.0, "0", "", "receivers") \
    X(window_silence, , window_silence_ns, DURATION, false, 0.01, 3600.0, "5.0", "", "seconds") \
    X(loss_high, , loss_high, FLOAT, false, 1e-05, 1.0, "0.01", "", "") \
    X(loss_low, , loss_low, FLOAT, false, 0.0, 1.0, "0.001", "", "") \
    X(rate_receivers, , rate_receivers, CHOICE, false, 0.0, 0.0, "worst", "worst,quantile,tagged", "") \
    X(rate_quantile, , rate_quantile, FLOAT, false, 0.0, 1.0, "0.95", "", "") \
    X(control_interval, , control_interval_ns, DURATION, false, 0.001, 10.0, "0.01", "", "seconds") \
    X(acks, , acks, UNSIGNED, false, 0.0, 1024.0, "0", "", "receivers") \
    X(acks_from, , acks_from, CHOICE, false, 0.0, 0.0, "receivers", "receivers,stores", "") \
    X(acks_missing, , acks_missing, CHOICE, false, 0.0, 0.0, "block", "block,degrade,fail", "") \
    X(unstable_messages, , unstable_messages, UNSIGNED, false, 0.0, 1099511627776.0, "0", "", "messages") \
    X(unstable_bytes, , unstable_bytes, UNSIGNED, false, 0.0, 1099511627776.0, "0", "", "bytes") \
    X(unstable_action, , unstable_action, CHOICE, false, 0.0, 0.0, "block", "block,refuse,report", "") \
    X(nak_limit, , nak_limit, UNSIGNED, false, 0.0, 1000000000.0, "0", "", "sequences") \
    X(ack_limit, , ack_limit, UNSIGNED, false, 0.0, 1000000000.0, "0", "", "packets") \
    X(repair_limit, , repair_limit, UNSIGNED, false, 0.0, 1099511627776.0, "0", "", "bytes") \
    X(repair_budget, , repair_budget, FLOAT, false, 0.0, 1000000.0, "2.0", "", "") \
    X(slow_mode, , slow_mode, CHOICE, false, 0.0, 0.0, "observe", "observe,advise,enforce", "") \
    X(slow_action, , slow_action, CHOICE, false, 0.0, 0.0, "suspend", "notify,pace,shed,suspend-naks,suspend,expel", "") \
    X(slow_wait, , slow_wait, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(slow_loss, , slow_loss, FLOAT, false, 0.0, 1.0, "0.05", "", "") \
    X(slow_naks, , slow_naks, FLOAT, false, 0.0, 1000000000.0, "0.0", "", "sequences/second") \
    X(slow_lag, , slow_lag, FLOAT, false, 0.0, 1.0, "0.75", "", "") \
    X(slow_buffer, , slow_buffer, FLOAT, false, 0.0, 1.0, "0.95", "", "") \
    X(slow_dwell, , slow_dwell_ns, DURATION, false, 0.03, 3600.0, "0.3", "", "seconds") \
    X(slow_lead, , slow_lead_ns, DURATION, false, 0.0, 3600.0, "1.0", "", "seconds") \
    X(suspend_time, , suspend_time_ns, DURATION, false, 0.1, 3600.0, "2.0", "", "seconds") \
    X(expel_after, , expel_after, UNSIGNED, false, 1.0, 8.0, "3", "", "suspensions") \
    X(expel_time, , expel_time_ns, DURATION, false, 0.1, 86400.0, "60.0", "", "seconds") \
    X(expel_share, , expel_share, FLOAT, false, 0.0, 1.0, "0.1", "", "") \
    X(storm_mode, , storm_mode, CHOICE, false, 0.0, 0.0, "observe", "observe,advise,enforce", "") \
    X(storm_time, , storm_time_ns, DURATION, false, 0.15, 3.0, "0.5", "", "seconds") \
    X(cutoff_time, , cutoff_time_ns, DURATION, false, 0.01, 5.0, "0.2", "", "seconds")

#define HELIO_RECEIVER_OPTIONS(X) \
    X(profile, stream., profile, CHOICE, false, 0.0, 0.0, "standard", "standard,lan-latency,lan-throughput,wan,many-receivers", "") \
    X(interface, stream., interface, STRING, false, 0.0, 0.0, "", "", "") \
    X(mtu, stream., mtu, UNSIGNED, false, 576.0, 65535.0, "1500", "", "bytes") \
    X(socket_buffer, stream., socket_buffer, UNSIGNED, false, 4096.0, 1073741824.0, "4194304", "", "bytes") \
    X(gro, , gro, CHOICE, false, 0.0, 0.0, "auto", "auto,off", "") \
    X(encapsulation, stream., encapsulation, CHOICE, false, 0.0, 0.0, "udp", "udp,ip", "") \
    X(inject_loss, , inject_loss, FLOAT, false, 0.0, 1.0, "0.0", "", "") \
    X(payload, stream., payload, CHOICE, false, 0.0, 0.0, "heliograph", "heliograph,raw", "") \
    X(connection_timeout, stream., connection_timeout_ns, DURATION, false, 0.1, 3600.0, "10.0", "", "seconds") \
    X(overflow, stream., overflow, CHOICE, true, 0.0, 0.0, "block", "block,drop_newest,drop_oldest,conflate,priority", "") \
    X(queue_messages, stream., queue_messages, UNSIGNED, true, 0.0, 16777216.0, "0", "", "messages") \
    X(queue_age, stream., queue_age_ns, DURATION, true, 0.0, 1000000.0, "0.0", "", "seconds") \
    X(low_water, stream., low_water, FLOAT, true, 0.0, 1.0, "0.5", "", "") \
    X(key_offset, stream., key_offset, UNSIGNED, true, 0.0, 1073741824.0, "0", "", "bytes") \
    X(key_bytes, stream., key_bytes, UNSIGNED, true, 0.0, 255.0, "0", "", "bytes") \
    X(priority_offset, stream., priority_offset, SIGNED, true, -1.0, 1073741824.0, "-1", "", "bytes") \
    X(queue_high, stream., queue_high, FLOAT, true, 0.0, 1.0, "0.0", "", "") \
    X(queue_low, stream., queue_low, FLOAT, true, 0.0, 1.0, "0.0", "", "") \
    X(max_message_bytes, stream., max_message_bytes, UNSIGNED, false, 1.0, 1073741824.0, "67108864", "", "bytes") \
    X(ack, , ack, CHOICE, false, 0.0, 0.0, "none", "none,auto,app,store", "") \
    X(ack_packets, , ack_packets, UNSIGNED, false, 1.0, 65536.0, "64", "", "packets") \
    X(credit, , credit, UNSIGNED, false, 0.0, 2147483648.0, "0", "", "messages") \
    X(tagged, , tagged, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(receive_window, , receive_window, UNSIGNED, false, 16.0, 4194304.0, "16384", "", "packets") \
    X(join, , join, CHOICE, false, 0.0, 0.0, "auto", "auto,live,history,store", "") \
    X(join_from, , join_from, STRING, true, 0.0, 0.0, "", "", "") \
    X(recover, , recover, CHOICE, true, 0.0, 0.0, "source", "source,store", "") \
    X(stores, , stores, STRING, true, 0.0, 0.0, "", "", "") \
    X(store_wait, , store_wait_ns, DURATION, true, 0.0, 3600.0, "5.0", "", "seconds") \
    X(durable, , durable, STRING, true, 0.0, 0.0, "", "", "") \
    X(receive_bytes, , receive_bytes, UNSIGNED, false, 0.0, 1099511627776.0, "0", "", "bytes") \
    X(receive_queue, , receive_queue, UNSIGNED, true, 65536.0, 1073741824.0, "8388608", "", "bytes") \
    X(reorder_packets, , reorder_packets, UNSIGNED, false, 0.0, 64.0, "2", "", "packets") \
    X(reorder_time, , reorder_time_ns, DURATION, false, 0.0, 10.0, "2e-05", "", "seconds") \
    X(nak, , nak, CHOICE, false, 0.0, 0.0, "on", "on,off", "") \
    X(order, , order, CHOICE, false, 0.0, 0.0, "stream", "stream,arrival", "") \
    X(group_size, , group_size, UNSIGNED, false, 0.0, 10000000.0, "0", "", "receivers") \
    X(nak_backoff, , nak_backoff_ns, DURATION, false, 0.0, 60.0, "0.0001", "", "seconds") \
    X(network_elements, , network_elements, BOOLEAN, false, 0.0, 0.0, "false", "", "") \
    X(service, , service, STRING, false, 0.0, 0.0, "", "", "") \
    X(share, , share, STRING, false, 0.0, 0.0, "", "", "") \
    X(repairer, , repairer, STRING, false, 0.0, 0.0, "", "", "") \
    X(repair_at, , repair_at, STRING, false, 0.0, 0.0, "", "", "") \
    X(repair_bytes, , repair_bytes, UNSIGNED, false, 65536.0, 1099511627776.0, "268435456", "", "bytes") \
    X(repair_time, , repair_time_ns, DURATION, false, 0.01, 86400.0, "60.0", "", "seconds") \
    X(repair_rate, , repair_rate, UNSIGNED, false, 0.0, 100000000000.0, "125000000", "", "bytes") \
    X(nak_retries, , nak_retries, UNSIGNED, false, 0.0, 65535.0, "64", "", "requests") \
    X(nak_deadline, , nak_deadline_ns, DURATION, false, 0.001, 3600.0, "1.0", "", "seconds") \
    X(stream_expiry, , stream_expiry_ns, DURATION, false, 0.01, 3600.0, "10.0", "", "seconds") \
    X(max_streams, , max_streams, UNSIGNED, false, 1.0, 65536.0, "64", "", "streams")

/* X(former name, name of now) */
#define HELIO_RENAMED_OPTIONS(X) \
    X(receive_overflow, overflow) \
    X(receive_messages, queue_messages) \
    X(receive_age, queue_age) \
    X(receive_low_water, low_water)

#endif
