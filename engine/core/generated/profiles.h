/* Generated from engine/catalogue/profiles.toml by generate.py; do not edit. */
/* clang-format off */
#ifndef HELIO_GENERATED_PROFILES_H
#define HELIO_GENERATED_PROFILES_H

/* X(PROFILE, option, value as text) */
#define HELIO_PROFILES(X) \
    X(LAN_LATENCY, idle, "spin") \
    X(LAN_LATENCY, heartbeat_min, "0.0002") \
    X(LAN_LATENCY, reorder_time, "1e-05") \
    X(LAN_THROUGHPUT, socket_buffer, "16777216") \
    X(LAN_THROUGHPUT, send_window, "32768") \
    X(LAN_THROUGHPUT, receive_window, "32768") \
    X(LAN_THROUGHPUT, submit_queue, "16777216") \
    X(LAN_THROUGHPUT, receive_queue, "33554432") \
    X(WAN, reorder_time, "0.001") \
    X(WAN, nak_deadline, "10.0") \
    X(WAN, report_interval, "1.0") \
    X(WAN, heartbeat_min, "0.1") \
    X(WAN, heartbeat_max, "30.0") \
    X(WAN, ambient_interval, "30.0") \
    X(WAN, stream_expiry, "300.0") \
    X(WAN, send_window, "65536") \
    X(WAN, receive_window, "65536") \
    X(WAN, linger, "10.0") \
    X(WAN, ttl, "32") \
    X(MANY_RECEIVERS, report_interval, "1.0") \
    X(MANY_RECEIVERS, heartbeat_min, "0.002") \
    X(MANY_RECEIVERS, socket_buffer, "16777216")

#endif
