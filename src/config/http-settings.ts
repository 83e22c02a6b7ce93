import { z } from 'zod';
import type { HttpConfig } from './config.js';
import { HTTP_DEFAULTS } from './defaults.js';
import { bytes, count, duration } from './fields.js';
import { expects } from './found.js';

const httpSettings = z.strictObject(
  {
    maxSessions: count(HTTP_DEFAULTS.maxSessions, 'Sessions at the same time; one more gets 503.', {
      min: 1,
      max: 10_000,
    }),
    sessionIdle: duration(
      HTTP_DEFAULTS.sessionIdle,
      'Ends a session in which nothing is asked and nobody listens for this long.',
      { min: '1s', max: '24h' },
    ),
    maxConnections: count(HTTP_DEFAULTS.maxConnections, 'Open connections; one more is closed at once.', {
      min: 1,
      max: 65_535,
    }),
    requestsPerSecond: count(
      HTTP_DEFAULTS.requestsPerSecond,
      'Requests of one token in a second, in the long run; more get 429.',
      { min: 1, max: 100_000 },
    ),
    requestBurst: count(HTTP_DEFAULTS.requestBurst, 'Requests of one token that may come all at once.', {
      min: 1,
      max: 100_000,
    }),
    maxBody: bytes(HTTP_DEFAULTS.maxBody, 'Largest body of a request; a larger one gets 413.', {
      min: '1KiB',
      max: '256MiB',
    }),
    // Node refuses less for a whole request than for its headers, which have 10 s.
    receiveTimeout: duration(HTTP_DEFAULTS.receiveTimeout, 'How long a whole request may take to arrive.', {
      min: '10s',
      max: '1h',
    }),
    keepAlive: duration(HTTP_DEFAULTS.keepAlive, 'Silence on a stream after which a comment is sent.', {
      min: '1s',
      max: '5m',
    }),
    maxUnread: bytes(
      HTTP_DEFAULTS.maxUnread,
      "What one session's streams may hold unread; the one that lags most is cut.",
      { min: '64KiB', max: '256MiB' },
    ),
    maxReplay: bytes(HTTP_DEFAULTS.maxReplay, 'What is kept of one session for a client that lost its connection.', {
      min: '0B',
      max: '256MiB',
    }),
  },
  expects('a map of settings'),
);

/** `gateway.http` of the file. */
export const httpSection = httpSettings.exactPartial();

export type HttpSection = z.output<typeof httpSection>;

const BUILT_IN = httpSettings.parse(HTTP_DEFAULTS);

/** The section's own settings, then the built-in ones, under the names that the HTTP front has for them. */
export function toHttpConfig(section: HttpSection): HttpConfig {
  const settings = { ...BUILT_IN, ...section };
  return {
    maxSessions: settings.maxSessions,
    sessionIdleMs: settings.sessionIdle,
    maxConnections: settings.maxConnections,
    requestsPerSecond: settings.requestsPerSecond,
    requestBurst: settings.requestBurst,
    maxBodyBytes: settings.maxBody,
    requestTimeoutMs: settings.receiveTimeout,
    keepAliveMs: settings.keepAlive,
    maxUnwrittenBytes: settings.maxUnread,
    replayBytes: settings.maxReplay,
  };
}
