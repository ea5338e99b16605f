/* Generated from engine/catalogue/identities.toml by generate.py; do not edit. */
/* clang-format off */
#ifndef HELIO_GENERATED_IDENTITIES_H
#define HELIO_GENERATED_IDENTITIES_H

/* Sums that hold in one object.  X(SCOPE, scope, name, left, right): the sides are sums over CELL(name),
 * which the user defines; they are equal, modulo 2^64. */
#define HELIO_IDENTITIES(X) \
    X(TX_STREAM, tx_stream, history, (CELL(packets_sent)), (CELL(history_packets) + CELL(history_trimmed_packets) + CELL(history_trimmed_bytes) + CELL(history_trimmed_age))) \
    X(TX_STREAM, tx_stream, requests, (CELL(naks_received)), (CELL(naks_answered_repaired) + CELL(naks_answered_queued_already) + CELL(naks_answered_ignored_recent) + CELL(naks_answered_too_late) + CELL(naks_answered_not_sent_yet) + CELL(naks_answered_shed) + CELL(repair_queue))) \
    X(TX_STREAM, tx_stream, repairs, (CELL(repair_packets)), (CELL(naks_answered_repaired))) \
    X(TRANSMITTER, transmitter, submitted, (CELL(messages_accepted)), (CELL(messages_sent) + CELL(messages_dropped_newest) + CELL(messages_dropped_oldest) + CELL(messages_dropped_conflated) + CELL(messages_dropped_priority) + CELL(messages_dropped_age) + CELL(messages_dropped_memory) + CELL(messages_dropped_credit) + CELL(messages_waiting))) \
    X(RX_STREAM, rx_stream, received, (CELL(packets_received)), (CELL(packets_delivered) + CELL(held_packets) + CELL(duplicates) + CELL(overflows) + CELL(packets_before_join) + CELL(packets_refused))) \
    X(RX_STREAM, rx_stream, sequence, (CELL(window_trail) - CELL(window_first)), (CELL(packets_delivered) + CELL(packets_lost_window_advanced) + CELL(packets_lost_ncf_retries) + CELL(packets_lost_data_retries) + CELL(packets_lost_deadline) + CELL(packets_lost_overflow) + CELL(packets_lost_reset) + CELL(packets_lost_not_requested) + CELL(packets_lost_suspended))) \
    X(RX_STREAM, rx_stream, gaps, (CELL(packets_missed)), (CELL(packets_late) + CELL(packets_recovered) + CELL(packets_lost_window_advanced) + CELL(packets_lost_ncf_retries) + CELL(packets_lost_data_retries) + CELL(packets_lost_deadline) + CELL(packets_lost_overflow) + CELL(packets_lost_reset) + CELL(packets_lost_not_requested) + CELL(packets_lost_suspended) + CELL(missing_packets))) \
    X(RX_STREAM, rx_stream, losses, (CELL(losses_located_history) + CELL(losses_located_late) + CELL(losses_located_queue) + CELL(losses_located_window) + CELL(losses_located_socket) + CELL(losses_located_outside)), (CELL(packets_recovered) + CELL(packets_lost_window_advanced) + CELL(packets_lost_ncf_retries) + CELL(packets_lost_data_retries) + CELL(packets_lost_deadline) + CELL(packets_lost_overflow) + CELL(packets_lost_reset) + CELL(packets_lost_not_requested) + CELL(packets_lost_suspended))) \
    X(RECEIVER, receiver, messages, (CELL(next_message) + CELL(messages_ahead)), (CELL(messages_before_join) + CELL(messages_delivered) + CELL(fragments_joined) + CELL(messages_lost))) \
    X(RECEIVER, receiver, queue, (CELL(messages_delivered)), (CELL(messages_taken) + CELL(messages_trimmed_count) + CELL(messages_trimmed_bytes) + CELL(messages_trimmed_age) + CELL(messages_trimmed_conflated) + CELL(messages_trimmed_priority) + CELL(queue_messages))) \
    X(STORE_STREAM, store_stream, messages, (CELL(messages_received)), (CELL(messages_kept) + CELL(messages_repeated) + CELL(messages_refused))) \
    X(FOLLOWER, follower, messages, (CELL(messages_covered)), (CELL(messages_live) + CELL(messages_stored_join) + CELL(messages_stored_loss) + CELL(messages_lost)))

/* The two ends of a stream.  X(SENDER, sender, RECEIVER, receiver, name, left, right, modulo): left is a sum
 * over SENT(name), right over CELL(name); left less right is in flight.  modulo 0: 2^64. */
#define HELIO_JOINS(X) \
    X(TX_STREAM, tx_stream, RX_STREAM, rx_stream, packets, (SENT(window_lead) + 1), (CELL(window_trail)), 4294967296) \
    X(TRANSMITTER, transmitter, RECEIVER, receiver, messages, (SENT(next_message)), (CELL(next_message)), 4294967296)

#endif
