/* Generated from engine/catalogue/errors.toml by generate.py; do not edit. */
#ifndef HELIO_ERRORS_H
#define HELIO_ERRORS_H

typedef enum helio_error {
    HELIO_OK = 0,
    HELIO_ERR_NOMEM = -1, /* Memory could not be had. */
    HELIO_ERR_OPTION = -2, /* An option is unknown or its value is outside its range. */
    HELIO_ERR_ENDPOINT = -3, /* An endpoint could not be parsed. */
    HELIO_ERR_ADDRESS = -4, /* An address, interface or port could not be used. */
    HELIO_ERR_WOULD_BLOCK = -5, /* The submit queue is full; try again after the engine has sent some of it. */
    HELIO_ERR_TIMEOUT = -6, /* The deadline passed first. */
    HELIO_ERR_CLOSED = -7, /* The object has been closed. */
    HELIO_ERR_SIZE = -8, /* The message is larger than max_message_bytes. */
    HELIO_ERR_STATE = -9, /* The call does not fit the object's mode or state. */
    HELIO_ERR_SYSTEM = -10, /* A system call failed; the text says which and why. */
    HELIO_ERR_PERMISSION = -11, /* The operating system refused for want of permission. */
    HELIO_ERR_TOPIC = -12, /* The topic name is empty, too long, or clashes with another. */
    HELIO_ERR_SEGMENT = -13, /* The stats segment could not be created. */
    HELIO_ERR_ACKERS = -20, /* Fewer receivers acknowledge than the option acks wants, and acks_missing says fail. */
} helio_error;

/* X(NAME, value, help) */
#define HELIO_ERRORS(X) \
    X(NOMEM, -1, "Memory could not be had.") \
    X(OPTION, -2, "An option is unknown or its value is outside its range.") \
    X(ENDPOINT, -3, "An endpoint could not be parsed.") \
    X(ADDRESS, -4, "An address, interface or port could not be used.") \
    X(WOULD_BLOCK, -5, "The submit queue is full; try again after the engine has sent some of it.") \
    X(TIMEOUT, -6, "The deadline passed first.") \
    X(CLOSED, -7, "The object has been closed.") \
    X(SIZE, -8, "The message is larger than max_message_bytes.") \
    X(STATE, -9, "The call does not fit the object's mode or state.") \
    X(SYSTEM, -10, "A system call failed; the text says which and why.") \
    X(PERMISSION, -11, "The operating system refused for want of permission.") \
    X(TOPIC, -12, "The topic name is empty, too long, or clashes with another.") \
    X(SEGMENT, -13, "The stats segment could not be created.") \
    X(ACKERS, -20, "Fewer receivers acknowledge than the option acks wants, and acks_missing says fail.")

#endif
