/* What a source does to its receivers, what it tells them, and that they obey. */
#include "fleet.h"
#include "window/rxw.h"

enum {
    SPM = 1 << HELIO_PGM_TYPE_SPM,
    RDATA = 1 << HELIO_PGM_TYPE_RDATA,
};

/* ---- one receiver ---- */

static void a_warning_is_told_once_and_changes_nothing(void) {
    fleet_begin(2);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_NOTIFY, 0, "lag of 900 packets"), 0);
    fleet_run(2 * HELIO_SECOND);
    CHECK_EQUAL(fleet[0].notices_count, 1);
    CHECK_EQUAL(fleet[1].notices_count, 0);
    const helio_notice notice = told(0);
    CHECK_EQUAL(notice.action, HELIO_ACTION_NOTIFY);
    CHECK_EQUAL(notice.reason, HELIO_REASON_LAG);
    CHECK_EQUAL(notice.by_hand, 0);
    CHECK(strcmp(notice.text, "lag of 900 packets") == 0);
    CHECK_EQUAL(events_of(HELIO_EVENT_WARNED), 1);
    CHECK_EQUAL(events_of(HELIO_EVENT_RECEIVER_ACTION), 1);
    CHECK_EQUAL(event_told->arguments[1], id_of(0));
    fleet[0].lose_every = 5;
    fleet_send(20, 100 * US);
    fleet_run(50 * MS);
    CHECK_EQUAL(fleet[0].messages, 24);
    fleet_end();
}

static void a_suspended_receiver_asks_for_nothing_until_its_time_is_over(void) {
    fleet_begin(2);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_SUSPEND, HELIO_SECOND, "loss 12 %"), 0);
    fleet_run(MS);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_SUSPEND);
    CHECK_EQUAL(told(0).duration_ns, HELIO_SECOND);
    CHECK_EQUAL(events_of(HELIO_EVENT_SUSPENDED), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_restricted), 1);
    fleet[0].lose_every = 4;
    fleet_send(40, 100 * US);
    fleet_run(900 * MS);
    CHECK_EQUAL(naks_of(0), 0);
    CHECK(fleet[0].messages < 10); /* it waits for the first it misses */
    CHECK_EQUAL(fleet[1].messages, 44);
    fleet_run(150 * MS);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_RESUME);
    CHECK_EQUAL(events_of(HELIO_EVENT_RESUMED), 1);
    CHECK_EQUAL(events_of(HELIO_EVENT_RECEIVER_ACTION), 2);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_restricted), 0);
    CHECK(naks_of(0) >= 10);
    CHECK_EQUAL(fleet[0].messages, 44);
    CHECK_EQUAL(fleet[0].notices_count, 2);
    CHECK_EQUAL(fleet[1].notices_count, 0);
    fleet_end();
}

static void a_notice_is_heard_though_its_first_three_are_lost(void) {
    fleet_begin(2);
    fleet_run(5 * HELIO_SECOND); /* SPMs are rare now */
    fleet[0].drop_types = SPM;
    fleet[0].drop_count = 3;
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_SUSPEND_NAKS, 10 * HELIO_SECOND, "naks"), 0);
    fleet_run(MS);
    CHECK_EQUAL(fleet[0].notices_count, 0);
    fleet_run(400 * MS);
    CHECK_EQUAL(fleet[0].drop_count, 0);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_SUSPEND_NAKS);
    CHECK(told(0).duration_ns < 10 * HELIO_SECOND);
    CHECK(told(0).duration_ns > 9 * HELIO_SECOND);
    fleet_end();
}

static void who_lost_all_repeats_hears_it_with_a_later_spm(void) {
    fleet_begin(1);
    fleet_run(5 * HELIO_SECOND);
    fleet[0].drop_types = SPM;
    fleet[0].drop_count = 1000;
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_SUSPEND, 100 * HELIO_SECOND, "naks"), 0);
    fleet_run(3 * HELIO_SECOND);
    CHECK_EQUAL(fleet[0].notices_count, 0);
    fleet[0].drop_count = 0;
    fleet_run(HELIO_SECOND);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_SUSPEND);
    fleet_end();
}

static void resuming_ends_a_suspension_at_once(void) {
    fleet_begin(1);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_SUSPEND, 0, "by hand"), 0); /* until it is undone */
    fleet_run(MS);
    fleet[0].lose_every = 3;
    fleet_send(9, 100 * US);
    fleet_run(HELIO_SECOND);
    CHECK_EQUAL(naks_of(0), 0);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_RESUME, 0, "it has recovered"), 0);
    fleet_run(20 * MS);
    CHECK_EQUAL(fleet[0].messages, 13);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_RESUME);
    CHECK(strcmp(told(0).text, "it has recovered") == 0);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_RESUME, 0, "again"), HELIO_ERR_STATE);
    fleet_end();
}

static void what_is_undone_before_it_was_heard_leaves_no_trace(void) {
    fleet_begin(1);
    fleet[0].drop_types = SPM;
    fleet[0].drop_count = 1000;
    fleet_act(0, HELIO_ACTION_SUSPEND, HELIO_SECOND, "loss");
    fleet_run(10 * MS);
    fleet_act(0, HELIO_ACTION_RESUME, 0, "no longer");
    fleet_run(10 * MS);
    fleet[0].drop_count = 0;
    fleet_run(2 * HELIO_SECOND);
    CHECK_EQUAL(fleet[0].notices_count, 0);
    CHECK_EQUAL(events_of(HELIO_EVENT_RESUMED), 0);
    fleet_end();
}

static void a_suspended_receiver_that_asks_all_the_same_gets_a_confirmation_and_no_repair(void) {
    fleet_begin(2);
    fleet[0].drop_types = SPM; /* it is never told */
    fleet[0].drop_count = 1000;
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_SUSPEND_NAKS, HELIO_SECOND, "naks"), 0);
    fleet[0].lose_every = 4;
    fleet_send(8, 100 * US);
    fleet_run(100 * MS);
    CHECK(naks_of(0) > 0);
    CHECK(helio_cell(&source_counts()->nak_confirmations_sent) > 0);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 0);
    CHECK(helio_cell(&source_counts()->naks_answered_shed) > 0);
    CHECK(fleet[0].messages < 12);
    CHECK_EQUAL(fleet[1].messages, 12);
    fleet_run(HELIO_SECOND);
    CHECK_EQUAL(fleet[0].messages, 12);
    fleet_end();
}

static void a_packet_that_another_misses_too_is_repaired(void) {
    fleet_begin(2);
    fleet_act(0, HELIO_ACTION_SUSPEND, HELIO_SECOND, "loss");
    fleet_run(MS);
    fleet[0].lose_every = fleet[1].lose_every = 4;
    fleet_send(8, 100 * US);
    fleet_run(50 * MS);
    CHECK_EQUAL(naks_of(0), 0);
    CHECK_EQUAL(fleet[0].messages, 12); /* by the repairs the other asked for */
    CHECK_EQUAL(fleet[1].messages, 12);
    fleet_end();
}

static void what_a_suspended_receiver_misses_is_lost_for_that_cause_when_its_time_has_come(void) {
    fleet_ack = HELIO_SINK_ACK_NONE; /* it is known by its reports alone */
    fleet_begin(2);
    fleet_ack = HELIO_SINK_ACK_AUTO;
    fleet[0].lose_every = 4;
    fleet_send(8, 20 * MS);
    fleet_run(HELIO_SECOND); /* it has reported by now */
    const uint64_t before = fleet[0].messages;
    CHECK_EQUAL(before, 12);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_SUSPEND, 10 * HELIO_SECOND, "loss"), 0);
    fleet_run(MS);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_SUSPEND);
    const uint64_t naks = naks_of(0);
    fleet_send(8, MS);
    fleet_run(900 * MS);
    CHECK_EQUAL(fleet[0].lost, 0); /* nak_deadline is a second */
    fleet_run(300 * MS);
    CHECK_EQUAL(naks_of(0), naks);
    CHECK_EQUAL(fleet[0].lost, 2);
    CHECK_EQUAL(fleet[0].messages, before + 6);
    CHECK(events_of(HELIO_EVENT_PACKETS_LOST) > 0);
    CHECK_EQUAL(event_told->arguments[2], HELIO_LOST_SUSPENDED);
    CHECK_EQUAL(fleet[1].messages, before + 8);
    fleet_end();
}

static void what_stands_is_seen_in_the_view(void) {
    fleet_begin(1);
    fleet_act(0, HELIO_ACTION_SUSPEND, HELIO_SECOND, "loss");
    const helio_receiver_view *view = &source.stream->repairer.receivers.views[place_of(0)];
    CHECK_EQUAL(view->flags & HELIO_VIEW_SUSPENDED, HELIO_VIEW_SUSPENDED);
    CHECK_EQUAL(view->flags & HELIO_VIEW_EXPELLED, 0);
    fleet_run(1100 * MS);
    CHECK_EQUAL(view->flags & HELIO_VIEW_SUSPENDED, 0);
    fleet_act(0, HELIO_ACTION_EXPEL, HELIO_SECOND, "loss");
    CHECK_EQUAL(view->flags & HELIO_VIEW_EXPELLED, HELIO_VIEW_EXPELLED);
    fleet_end();
}

/* ---- expelled ---- */

static void an_expelled_receiver_goes_and_comes_back_when_readmitted(void) {
    fleet_begin(2);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_EXPEL, 0, "buffer full for 3 s"), 0);
    fleet_run(10 * MS);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_EXPEL);
    CHECK_EQUAL(fleet[0].ended, 1);
    CHECK_EQUAL(events_of(HELIO_EVENT_EXPELLED), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    fleet_send(10, MS);
    fleet_run(3 * HELIO_SECOND); /* SPMs come meanwhile */
    CHECK_EQUAL(fleet[0].streams, 1);
    CHECK_EQUAL(fleet[0].messages, 4);
    CHECK_EQUAL(fleet[1].messages, 14);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_SUSPEND, HELIO_SECOND, "x"), HELIO_ERR_STATE);
    CHECK_EQUAL(fleet_act(0, HELIO_ACTION_READMIT, 0, "by hand"), 0);
    fleet_run(10 * MS);
    CHECK_EQUAL(events_of(HELIO_EVENT_RESUMED), 1);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_READMIT);
    fleet_send(5, MS);
    fleet_run(20 * MS);
    CHECK_EQUAL(fleet[0].streams, 2);
    CHECK_EQUAL(fleet[0].messages, 9); /* what was sent meanwhile is not asked for, */
    CHECK_EQUAL(fleet[0].lost, 10);    /* and lost */
    CHECK_EQUAL(fleet[1].messages, 19);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 2);
    fleet_end();
}

static void an_expulsion_ends_by_itself(void) {
    fleet_begin(1);
    fleet_act(0, HELIO_ACTION_EXPEL, 2 * HELIO_SECOND, "loss");
    fleet_run(1900 * MS);
    CHECK_EQUAL(fleet[0].streams, 1);
    fleet_run(1500 * MS);
    fleet_send(3, MS);
    CHECK_EQUAL(fleet[0].streams, 2);
    CHECK_EQUAL(fleet[0].messages, 7);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_restricted), 0);
    fleet_end();
}

static void a_later_life_of_an_expelled_receiver_is_expelled_too(void) {
    fleet_begin(2);
    fleet_act(0, HELIO_ACTION_EXPEL, 0, "loss");
    fleet_run(600 * MS);
    world_end_receiver(&fleet[0].receiver);
    helio_rx_endpoint_config again = fleet_receiver_config(0);
    again.feedback_address = world_host(300, 50000); /* from elsewhere */
    fleet_add(0, &again);
    fleet_run(3 * HELIO_SECOND);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_EXPEL);
    fleet_send(5, MS);
    CHECK_EQUAL(fleet[0].messages, 0);
    CHECK_EQUAL(fleet[1].messages, 9);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    fleet_end();
}

static void what_an_expelled_receiver_says_is_not_heeded(void) {
    fleet_begin(2);
    fleet[0].drop_types = SPM; /* it does not know */
    fleet[0].drop_count = 1000;
    fleet_act(0, HELIO_ACTION_EXPEL, HELIO_SECOND, "naks");
    const uint64_t confirmed = helio_cell(&source_counts()->nak_confirmations_sent);
    const uint64_t asked = helio_cell(&source_counts()->naks_received);
    fleet[0].lose_every = 2;
    fleet_send(10, 100 * US);
    fleet_run(20 * MS);
    CHECK(naks_of(0) > 0);
    CHECK(helio_cell(&source_counts()->feedback_expelled) > 0);
    CHECK_EQUAL(helio_cell(&source_counts()->naks_received), asked);
    CHECK_EQUAL(helio_cell(&source_counts()->nak_confirmations_sent), confirmed);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    fleet_end();
}

/* ---- waiting for acknowledgements ---- */

static void a_suspended_receiver_is_not_waited_for(void) {
    helio_tx_stream_config config = fleet_source_config();
    config.acks = 3;
    config.acks_missing = HELIO_ACKS_MISSING_DEGRADE;
    fleet_begin_with(3, &config);
    fleet[0].drop_types = 1 << HELIO_PGM_TYPE_ODATA | RDATA; /* it gets nothing more */
    fleet[0].drop_count = 1 << 30;
    fleet_send(10, MS);
    CHECK(helio_cell(&source_counts()->history_unacked) >= 10);
    fleet_act(0, HELIO_ACTION_SUSPEND, HELIO_SECOND, "lag");
    fleet_run(20 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    fleet[0].drop_count = 0;
    fleet_run(1200 * MS);
    fleet_send(3, MS);
    fleet_run(50 * MS);
    CHECK_EQUAL(fleet[0].messages, fleet[1].messages); /* it is back, and counts */
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 3);
    fleet_end();
}

/* ---- all receivers ---- */

static void in_a_cut_off_nobody_asks_and_afterwards_all_recover(void) {
    fleet_begin(8);
    helio_tx_stream_cut_off(source.stream, 500 * MS, "storm of NAKs", false, world_now(&w));
    fleet_run(MS);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQUAL(told(i).action, HELIO_ACTION_CUT_OFF);
        CHECK_EQUAL(told(i).reason, HELIO_REASON_STORM);
        fleet[i].lose_every = 3 + i;
    }
    fleet_send(40, 100 * US);
    fleet_run(450 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->nak_packets_received), 0);
    fleet_run(200 * MS);
    CHECK(helio_cell(&source_counts()->nak_packets_received) > 0);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQUAL(fleet[i].messages, 44);
        CHECK_EQUAL(fleet[i].lost, 0);
        CHECK_EQUAL(told(i).action, HELIO_ACTION_RESUME);
    }
    fleet_end();
}

static void a_cut_off_can_be_ended(void) {
    fleet_begin(2);
    helio_tx_stream_cut_off(source.stream, 100 * HELIO_SECOND, "storm", true, world_now(&w));
    fleet_run(MS);
    CHECK_EQUAL(told(0).by_hand, 1);
    fleet[0].lose_every = 3;
    fleet_send(9, 100 * US);
    fleet_run(HELIO_SECOND);
    CHECK_EQUAL(naks_of(0), 0);
    helio_tx_stream_cut_off(source.stream, 0, "over", true, world_now(&w));
    fleet_run(20 * MS);
    CHECK_EQUAL(fleet[0].messages, 13);
    CHECK_EQUAL(told(0).action, HELIO_ACTION_RESUME);
    fleet_end();
}

/* ---- several ---- */

static void many_notices_in_force_are_all_heard(void) {
    enum { MANY = 20 };
    fleet_begin(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_EQUAL(fleet_act(i, HELIO_ACTION_SUSPEND, 10 * HELIO_SECOND, "loss"), 0);
    }
    fleet[7].drop_types = SPM;
    fleet[7].drop_count = 30; /* longer than the repeats */
    fleet_run(5 * HELIO_SECOND);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_EQUAL(fleet[i].notices_count, 1);
        CHECK_EQUAL(told(i).action, HELIO_ACTION_SUSPEND);
    }
    fleet_end();
}

static void a_warning_does_not_take_the_place_of_what_stands(void) {
    fleet_begin(1);
    fleet[0].drop_types = SPM;
    fleet[0].drop_count = 2;
    fleet_act(0, HELIO_ACTION_SUSPEND, HELIO_SECOND, "loss");
    fleet_act(0, HELIO_ACTION_NOTIFY, 0, "lag");
    fleet_run(300 * MS);
    CHECK_EQUAL(fleet[0].notices_count, 2);
    fleet[0].lose_every = 2;
    fleet_send(4, MS);
    CHECK_EQUAL(naks_of(0), 0);
    fleet_end();
}

/* ---- those who cannot be told, and forgers ---- */

/* A packet to the source from an address nothing else is known of. */
static void ask_as_stranger(const helio_address *from, uint32_t sequence) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {source.stream->config.tsi, 7500};
    const size_t length =
        helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, &sequence, 1,
                             &source.stream->config.address, &source.stream->config.group);
    helio_tx_stream_on_packet(source.stream, packet, length, from, world_now(&w));
}

static void a_receiver_of_another_make_is_treated_without_being_told(void) {
    fleet_begin(1);
    const helio_address stranger = world_host(500, 4000);
    ask_as_stranger(&stranger, 2);
    fleet_run(10 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 1);
    const uint32_t place = helio_receivers_at(&source.stream->repairer.receivers, &stranger);
    const uint64_t notices = helio_cell(&source_counts()->notices_sent);
    CHECK_EQUAL(helio_tx_stream_act(source.stream, place, HELIO_ACTION_SUSPEND_NAKS, HELIO_SECOND,
                                    "naks", false, world_now(&w)),
                0);
    ask_as_stranger(&stranger, 2);
    fleet_run(10 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->naks_answered_shed), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->notices_sent), notices);
    fleet_run(HELIO_SECOND);
    ask_as_stranger(&stranger, 2);
    fleet_run(10 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 2);
    fleet_end();
}

static void nobody_at_a_place_is_refused(void) {
    fleet_begin(1);
    CHECK_EQUAL(
        helio_tx_stream_act(source.stream, 99, HELIO_ACTION_SUSPEND, 0, "x", true, world_now(&w)),
        HELIO_ERR_STATE);
    CHECK_EQUAL(helio_tx_stream_act(source.stream, HELIO_RECEIVER_NONE, HELIO_ACTION_SUSPEND, 0,
                                    "x", true, world_now(&w)),
                HELIO_ERR_STATE);
    CHECK_EQUAL(helio_tx_stream_act(source.stream, place_of(0), HELIO_ACTION_NONE, 0, "x", true,
                                    world_now(&w)),
                HELIO_ERR_STATE);
    fleet_end();
}

/* An SPM with a notice for receiver 0, as from `from`. */
static void notify_as(const helio_address *from, uint32_t spm_sequence,
                      const helio_pgm_notice *notice) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {source.stream->config.tsi, 7500};
    const helio_pgm_spm spm = {.sequence = spm_sequence,
                               .trail = (uint32_t)source.stream->txw.trail,
                               .lead = (uint32_t)source.stream->txw.lead,
                               .notices = notice,
                               .notices_count = 1};
    const size_t length =
        helio_pgm_encode_spm(packet, &session, &spm, &source.stream->config.address);
    helio_rx_endpoint_on_packet(fleet[0].receiver.endpoint, packet, length, from,
                                world_now(&w).wall_ns, world_now(&w));
}

static void a_notice_from_elsewhere_or_out_of_order_is_not_believed(void) {
    fleet_begin(1);
    const helio_pgm_notice expel = {
        .action = HELIO_ACTION_EXPEL, .serial = 7, .duration_ms = 1000, .receiver = id_of(0)};
    const helio_address forger = world_host(66, 40001);
    notify_as(&forger, source.stream->spm_sequence + 5, &expel);
    helio_address itself = source.stream->config.address;
    itself.port = source.stream->config.tsi.port;
    notify_as(&itself, source.stream->spm_sequence - 1, &expel); /* an old one */
    fleet_run(MS);
    CHECK_EQUAL(fleet[0].notices_count, 0);
    CHECK_EQUAL(fleet[0].ended, 0);
    CHECK_EQUAL(events_of(HELIO_EVENT_STREAM_CONFLICT), 1);
    fleet_end();
}

static void nothing_is_believed_for_longer_than_an_hour(void) {
    fleet_begin(1);
    helio_address itself = source.stream->config.address;
    itself.port = source.stream->config.tsi.port;
    const helio_pgm_notice suspend = {.action = HELIO_ACTION_SUSPEND,
                                      .serial = 7,
                                      .duration_ms = UINT32_MAX,
                                      .receiver = id_of(0)};
    notify_as(&itself, source.stream->spm_sequence + 5, &suspend);
    CHECK_EQUAL(told(0).duration_ns, 3600 * HELIO_SECOND);
    helio_pgm_notice strange = suspend;
    strange.serial = 8;
    strange.action = 99; /* of a later version */
    notify_as(&itself, source.stream->spm_sequence + 6, &strange);
    strange.action = HELIO_ACTION_CUT_OFF; /* for one receiver: makes no sense */
    notify_as(&itself, source.stream->spm_sequence + 7, &strange);
    strange.action = HELIO_ACTION_EXPEL; /* for another life */
    strange.incarnation = 5;
    notify_as(&itself, source.stream->spm_sequence + 8, &strange);
    strange.receiver = strange.incarnation = 0; /* for all: makes no sense */
    notify_as(&itself, source.stream->spm_sequence + 9, &strange);
    CHECK_EQUAL(fleet[0].notices_count, 1);
    fleet_end();
}

/* ---- numbers ---- */

static uint32_t actions_on_wire; /* bits of the actions in notices that reached receiver 0 */

static bool read_actions(void *context, const void *bytes, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    helio_pgm_packet packet;
    if (helio_pgm_decode(bytes, length, &packet) == HELIO_PGM_ACCEPTED) {
        for (uint32_t i = 0; i < packet.notices_count; i++) {
            actions_on_wire |= 1U << packet.notices[i].action;
        }
    }
    return false;
}

/* The packet, the notice and the events of both ends have it. */
static void check_number(helio_action action, helio_event_id event_at_receiver) {
    CHECK(actions_on_wire >> action & 1);
    CHECK_EQUAL(told(0).action, action);
    CHECK(events_of(HELIO_EVENT_RECEIVER_ACTION) > 0);
    CHECK_EQUAL(event_told->arguments[0], action);
    CHECK(events_of(event_at_receiver) > 0);
    CHECK_EQUAL(event_told->arguments[0], action);
}

static void an_action_has_the_same_number_everywhere(void) {
    static const struct {
        helio_action action, in_force;
        helio_event_id event;
    } steps[] = {{HELIO_ACTION_NOTIFY, HELIO_ACTION_NONE, HELIO_EVENT_WARNED},
                 {HELIO_ACTION_SHED, HELIO_ACTION_SHED, HELIO_EVENT_WARNED},
                 {HELIO_ACTION_SUSPEND_NAKS, HELIO_ACTION_SUSPEND_NAKS, HELIO_EVENT_SUSPENDED},
                 {HELIO_ACTION_SUSPEND, HELIO_ACTION_SUSPEND, HELIO_EVENT_SUSPENDED},
                 {HELIO_ACTION_RESUME, HELIO_ACTION_NONE, HELIO_EVENT_RESUMED},
                 {HELIO_ACTION_EXPEL, HELIO_ACTION_EXPEL, HELIO_EVENT_EXPELLED},
                 {HELIO_ACTION_READMIT, HELIO_ACTION_NONE, HELIO_EVENT_RESUMED}};
    fleet_begin(2);
    helio_sim_set_link(fleet[0].receiver.node,
                       &(helio_sim_link){.delay_ns = 50 * US, .drops = read_actions});
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        actions_on_wire = 0;
        CHECK_EQUAL(fleet_act(0, steps[i].action, 0, "test"), 0);
        fleet_run(10 * MS);
        check_number(steps[i].action, steps[i].event);
        CHECK_EQUAL(
            helio_cell(
                &helio_receivers_stats(&source.stream->repairer.receivers, place_of(0))->action),
            steps[i].in_force);
    }
    fleet_send(2, MS); /* it follows the stream again */
    helio_tx_stream_cut_off(source.stream, HELIO_SECOND, "test", false, world_now(&w));
    fleet_run(10 * MS);
    check_number(HELIO_ACTION_CUT_OFF, HELIO_EVENT_SUSPENDED);
    fleet_end();
}

/* ---- hostile bytes ---- */

/* Decodes a copy of exactly this length, so that a sanitizer sees what is read beyond it. */
static helio_pgm_refusal decode(const uint8_t *bytes, size_t length, helio_pgm_packet *out) {
    uint8_t *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    const helio_pgm_refusal refusal = helio_pgm_decode(copy, length, out);
    for (uint32_t i = 0; !refusal && i < out->notices_count; i++) {
        CHECK(out->notices[i].text_bytes <= HELIO_PGM_NOTICE_TEXT_MAX);
        CHECK(out->notices[i].text + out->notices[i].text_bytes <= (const char *)copy + length);
    }
    free(copy);
    return refusal;
}

static void every_cut_and_every_length_of_a_notice_is_survived(void) {
    const helio_pgm_session session = {{{1, 2, 3, 4, 5, 6}, 40001}, 7500};
    const helio_address path = world_host(1, 0);
    const helio_pgm_notice notices[] = {
        {HELIO_ACTION_SUSPEND, 1, 7, 5000, 0xF000, 0, "loss 12 %", 9},
        {HELIO_ACTION_NOTIFY, 3, 8, 0, 0xF001, 3, "", 0},
        {HELIO_ACTION_CUT_OFF, 5, 9, 100, 0, 0, "storm", 5}};
    const helio_pgm_spm spm = {.trail = 1, .lead = 9, .notices = notices, .notices_count = 3};
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const size_t length = helio_pgm_encode_spm(packet, &session, &spm, &path);
    helio_pgm_packet out;
    CHECK_EQUAL(decode(packet, length, &out), HELIO_PGM_ACCEPTED);
    CHECK_EQUAL(out.notices_count, 3);
    CHECK_EQUAL(out.options, HELIO_PGM_HAS_NOTICE);
    packet[6] = packet[7] = 0; /* no checksum: only the bytes are to blame */
    const size_t chain = HELIO_PGM_HEADER + 20, first = chain + 4;
    for (size_t cut = 0; cut < length; cut++) {
        CHECK(decode(packet, cut, &out) != HELIO_PGM_ACCEPTED);
        if (cut < first) {
            continue;
        }
        uint8_t shorter[HELIO_PGM_CONTROL_MAX];
        memcpy(shorter, packet, cut);
        shorter[chain + 2] = (uint8_t)((cut - chain) >> 8);
        shorter[chain + 3] = (uint8_t)(cut - chain);
        CHECK(decode(shorter, cut, &out) != HELIO_PGM_ACCEPTED);
    }
    for (int bytes = 0; bytes < 256; bytes++) {
        uint8_t other[HELIO_PGM_CONTROL_MAX];
        memcpy(other, packet, length);
        other[first + 1] = (uint8_t)bytes;
        const helio_pgm_refusal refusal = decode(other, length, &out);
        if (bytes == HELIO_PGM_NOTICE_OPTION + 9) {
            CHECK_EQUAL(refusal, HELIO_PGM_ACCEPTED);
        } else { /* one or two of the others may be where it says that it ends */
            CHECK(refusal != HELIO_PGM_ACCEPTED || out.notices_count < 3);
        }
    }
}

static void more_notices_than_may_be_are_refused(void) {
    const helio_pgm_session session = {{{1, 2, 3, 4, 5, 6}, 40001}, 7500};
    const helio_address path = world_host(1, 0);
    const helio_pgm_notice notice = {HELIO_ACTION_SUSPEND, 1, 7, 5000, 0xF000, 0, "", 0};
    const helio_pgm_notice four[] = {notice, notice, notice, notice};
    const helio_pgm_spm spm = {.trail = 1, .lead = 9, .notices = four, .notices_count = 4};
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const size_t length = helio_pgm_encode_spm(packet, &session, &spm, &path);
    helio_pgm_packet out;
    CHECK_EQUAL(decode(packet, length, &out), HELIO_PGM_BAD_OPTIONS);
}

int main(void) {
    RUN(a_warning_is_told_once_and_changes_nothing);
    RUN(a_suspended_receiver_asks_for_nothing_until_its_time_is_over);
    RUN(a_notice_is_heard_though_its_first_three_are_lost);
    RUN(who_lost_all_repeats_hears_it_with_a_later_spm);
    RUN(resuming_ends_a_suspension_at_once);
    RUN(what_is_undone_before_it_was_heard_leaves_no_trace);
    RUN(a_suspended_receiver_that_asks_all_the_same_gets_a_confirmation_and_no_repair);
    RUN(a_packet_that_another_misses_too_is_repaired);
    RUN(what_a_suspended_receiver_misses_is_lost_for_that_cause_when_its_time_has_come);
    RUN(what_stands_is_seen_in_the_view);
    RUN(an_expelled_receiver_goes_and_comes_back_when_readmitted);
    RUN(an_expulsion_ends_by_itself);
    RUN(a_later_life_of_an_expelled_receiver_is_expelled_too);
    RUN(what_an_expelled_receiver_says_is_not_heeded);
    RUN(a_suspended_receiver_is_not_waited_for);
    RUN(in_a_cut_off_nobody_asks_and_afterwards_all_recover);
    RUN(a_cut_off_can_be_ended);
    RUN(many_notices_in_force_are_all_heard);
    RUN(a_warning_does_not_take_the_place_of_what_stands);
    RUN(a_receiver_of_another_make_is_treated_without_being_told);
    RUN(nobody_at_a_place_is_refused);
    RUN(a_notice_from_elsewhere_or_out_of_order_is_not_believed);
    RUN(nothing_is_believed_for_longer_than_an_hour);
    RUN(an_action_has_the_same_number_everywhere);
    RUN(every_cut_and_every_length_of_a_notice_is_survived);
    RUN(more_notices_than_may_be_are_refused);
    return check_result();
}
