/* Generated from engine/catalogue/errors.toml by generate.py; do not edit. */
/* clang-format off */
#ifndef HELIO_ERRORS_H
#define HELIO_ERRORS_H

typedef enum helio_error {
    HELIO_OK = 0,
    /* No memory could be allocated. */
    HELIO_ERR_NOMEM = -1,
    /* An option is unknown or its value is out of range. */
    HELIO_ERR_OPTION = -2,
    /* An endpoint could not be parsed. */
    HELIO_ERR_ENDPOINT = -3,
    /* An address, interface or port is not usable. */
    HELIO_ERR_ADDRESS = -4,
    /* The submit queue is full; call again after the engine has sent part of it. */
    HELIO_ERR_WOULD_BLOCK = -5,
    /* The deadline passed. */
    HELIO_ERR_TIMEOUT = -6,
    /* The object is closed. */
    HELIO_ERR_CLOSED = -7,
    /* The message is larger than max_message_bytes. */
    HELIO_ERR_SIZE = -8,
    /* The object's mode or state does not permit the call. */
    HELIO_ERR_STATE = -9,
    /* A system call failed; the text names it and the reason. */
    HELIO_ERR_SYSTEM = -10,
    /* The operating system denied permission. */
    HELIO_ERR_PERMISSION = -11,
    /* The topic name is empty, too long, or conflicts with another topic. */
    HELIO_ERR_TOPIC = -12,
    /* The stats segment could not be created. */
    HELIO_ERR_SEGMENT = -13,
    /* Fewer receivers acknowledge than the option acks requires (acks_missing=fail), or too many messages are not stable (unstable_action=refuse). */
    HELIO_ERR_ACKERS = -20,
} helio_error;

/* X(NAME, value, help) */
#define HELIO_ERRORS(X) \
    X(NOMEM, -1, "No memory could be allocated.") \
    X(OPTION, -2, "An option is unknown or its value is out of range.") \
    X(ENDPOINT, -3, "An endpoint could not be parsed.") \
    X(ADDRESS, -4, "An address, interface or port is not usable.") \
    X(WOULD_BLOCK, -5, "The submit queue is full; call again after the engine has sent part of it.") \
    X(TIMEOUT, -6, "The deadline passed.") \
    X(CLOSED, -7, "The object is closed.") \
    X(SIZE, -8, "The message is larger than max_message_bytes.") \
    X(STATE, -9, "The object's mode or state does not permit the call.") \
    X(SYSTEM, -10, "A system call failed; the text names it and the reason.") \
    X(PERMISSION, -11, "The operating system denied permission.") \
    X(TOPIC, -12, "The topic name is empty, too long, or conflicts with another topic.") \
    X(SEGMENT, -13, "The stats segment could not be created.") \
    X(ACKERS, -20, "Fewer receivers acknowledge than the option acks requires (acks_missing=fail), or too many messages are not stable (unstable_action=refuse).")

#endif
