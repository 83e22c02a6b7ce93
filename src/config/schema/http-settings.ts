import * as z from 'zod/mini';
import { bytes, count, duration, expects } from './fields.js';
import { HTTP_SETTINGS } from './settings.js';

const httpSettings = z.strictObject(
  {
    maxSessions: count(HTTP_SETTINGS.maxSessions, 'Open sessions. A request for one more is answered with 503.'),
    sessionIdle: duration(
      HTTP_SETTINGS.sessionIdle,
      'Ends a session after this long without an in-flight request and without an open GET stream.',
    ),
    maxConnections: count(
      HTTP_SETTINGS.maxConnections,
      'Open connections. One more closes the oldest one without an authenticated request; if there is none, it is closed at once.',
    ),
    requestsPerSecond: count(
      HTTP_SETTINGS.requestsPerSecond,
      'Sustained request rate of one token, per second. Further requests are answered with 429.',
    ),
    requestBurst: count(
      HTTP_SETTINGS.requestBurst,
      'Requests of one token that may arrive at once. Beside a session that uses them up, others have half as many more.',
    ),
    maxBody: bytes(HTTP_SETTINGS.maxBody, 'Largest request body. A larger one is answered with 413.'),
    maxPartial: bytes(
      HTTP_SETTINGS.maxPartial,
      'Limit on request bodies that have not arrived completely, for all clients together; at least maxBody. When it is reached, the token that holds the most loses its largest body, with 503.',
    ),
    receiveTimeout: duration(HTTP_SETTINGS.receiveTimeout, 'How long a whole request may take to arrive.'),
    keepAlive: duration(
      HTTP_SETTINGS.keepAlive,
      'How long a stream may be silent before a comment is sent to keep it open.',
    ),
    maxUnread: bytes(
      HTTP_SETTINGS.maxUnread,
      'Unread data of all streams of one session. Beyond it, the slowest stream is cut.',
    ),
    maxReplay: bytes(
      HTTP_SETTINGS.maxReplay,
      'Sent data that is stored for each session, so that a client can resume a lost connection.',
    ),
  },
  expects('a map of settings'),
);

/** `gateway.http` of the file. */
export const httpSection = z.exactPartial(httpSettings);
