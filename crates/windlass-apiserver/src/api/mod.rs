//! Requests in, responses out: routing, negotiation, verbs, discovery and watches as one synchronous step.
