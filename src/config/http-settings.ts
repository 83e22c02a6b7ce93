import * as z from 'zod/mini';
import type { HttpConfig } from './config.js';
import { HTTP_DEFAULTS } from './defaults.js';
import { bytes, count, duration, expects } from './fields.js';

const httpSettings = z.strictObject(
  {
    maxSessions: count(HTTP_DEFAULTS.maxSessions, 'Open sessions. A request for one more is answered with 503.', {
      min: 1,
      max: 10_000,
    }),
    sessionIdle: duration(
      HTTP_DEFAULTS.sessionIdle,
      'Ends a session after this long without an in-flight request and without an open GET stream.',
      { min: '1s', max: '24h' },
    ),
    maxConnections: count(
      HTTP_DEFAULTS.maxConnections,
      'Open connections. One more closes the oldest one without an authenticated request; if there is none, it is closed at once.',
      {
        min: 1,
        max: 65_535,
      },
    ),
    requestsPerSecond: count(
      HTTP_DEFAULTS.requestsPerSecond,
      'Sustained request rate of one token, per second. Further requests are answered with 429.',
      { min: 1, max: 100_000 },
    ),
    requestBurst: count(
      HTTP_DEFAULTS.requestBurst,
      'Requests of one token that may arrive at once. Beside a session that uses them up, others have half as many more.',
      {
        min: 1,
        max: 100_000,
      },
    ),
    maxBody: bytes(HTTP_DEFAULTS.maxBody, 'Largest request body. A larger one is answered with 413.', {
      min: '1KiB',
      max: '256MiB',
    }),
    maxPartial: bytes(
      HTTP_DEFAULTS.maxPartial,
      'Limit on request bodies that have not arrived completely, for all clients together; at least maxBody. When it is reached, the token that holds the most loses its largest body, with 503.',
      { min: '1MiB', max: '16GiB' },
    ),
    // Node requires at least as much time for a whole request as for its headers, which have 10 s.
    receiveTimeout: duration(HTTP_DEFAULTS.receiveTimeout, 'How long a whole request may take to arrive.', {
      min: '10s',
      max: '1h',
    }),
    keepAlive: duration(
      HTTP_DEFAULTS.keepAlive,
      'How long a stream may be silent before a comment is sent to keep it open.',
      {
        min: '1s',
        max: '5m',
      },
    ),
    maxUnread: bytes(
      HTTP_DEFAULTS.maxUnread,
      'Unread data of all streams of one session. Beyond it, the slowest stream is cut.',
      { min: '64KiB', max: '256MiB' },
    ),
    maxReplay: bytes(
      HTTP_DEFAULTS.maxReplay,
      'Sent data that is stored for each session, so that a client can resume a lost connection.',
      {
        min: '0B',
        max: '256MiB',
      },
    ),
  },
  expects('a map of settings'),
);

/** `gateway.http` of the file. */
export const httpSection = z.exactPartial(httpSettings);

export type HttpSection = z.output<typeof httpSection>;

const BUILT_IN = httpSettings.parse(HTTP_DEFAULTS);

/** Settings of the section, completed with the built-in ones, under the names that the HTTP server uses. */
export function toHttpConfig(section: HttpSection): HttpConfig {
  const settings = { ...BUILT_IN, ...section };
  return {
    maxSessions: settings.maxSessions,
    sessionIdleMs: settings.sessionIdle,
    maxConnections: settings.maxConnections,
    requestsPerSecond: settings.requestsPerSecond,
    requestBurst: settings.requestBurst,
    maxBodyBytes: settings.maxBody,
    maxPartialBytes: Math.max(settings.maxPartial, settings.maxBody),
    requestTimeoutMs: settings.receiveTimeout,
    keepAliveMs: settings.keepAlive,
    maxUnwrittenBytes: settings.maxUnread,
    replayBytes: settings.maxReplay,
  };
}
