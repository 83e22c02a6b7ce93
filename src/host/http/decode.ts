import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { pipeline, type Readable, Transform } from 'node:stream';
import * as zlib from 'node:zlib';

/** An answer whose headers have come. Its bytes are those of the body without the codings of `Content-Encoding`. */
export type HttpAnswer = Readable &
  Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'headers' | 'headersDistinct' | 'complete'>;

// A body without its last block can be read, as browsers do.
const ZLIB = { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH };
const FLUSH = zlib.constants.BROTLI_OPERATION_FLUSH;
/** Absent before Node 22.15. */
const { createZstdDecompress } = zlib as { readonly createZstdDecompress?: () => Transform };

const DECODERS: Readonly<Record<string, () => readonly Transform[]>> = {
  gzip: () => [zlib.createGunzip(ZLIB)],
  'x-gzip': () => [zlib.createGunzip(ZLIB)],
  deflate: () => [withZlibHeader(), zlib.createInflate(ZLIB)],
  br: () => [zlib.createBrotliDecompress({ flush: FLUSH, finishFlush: FLUSH })],
  ...(createZstdDecompress && { zstd: () => [createZstdDecompress()] }),
};
const MAX_CODINGS = 3;

/** The codings that this Node decodes, for `Accept-Encoding`. */
export const ACCEPT_ENCODING = `gzip, deflate, br${createZstdDecompress === undefined ? '' : ', zstd'}`;

/**
 * Decodes the body of an answer at the pace of its reader, so that a decompression bomb costs only as much as is read. A body in an
 * unknown coding stays as it is, because some servers name one and use none. Damage ends the answer early.
 */
export function decode(response: IncomingMessage): HttpAnswer {
  const codings = codingsOf(response);
  if (codings.length === 0 || unknownCoding(response) !== undefined) return response;
  const stages = codings.reverse().flatMap((coding) => DECODERS[coding]?.() ?? []);
  const body = pipeline([response, ...stages], () => {}) as unknown as Readable;
  // Ignores the error, because the reader of the body looks at `complete`.
  body.on('error', () => {});
  const { statusCode, statusMessage, headers, headersDistinct } = response;
  Object.defineProperty(body, 'complete', { get: () => response.complete && body.readableEnded });
  return Object.assign(body, { statusCode, statusMessage, headers, headersDistinct }) as HttpAnswer;
}

/** The codings of a body that cannot be decoded, as the server writes them; `undefined` if it can be decoded. */
export function unknownCoding(answer: { readonly headers: IncomingHttpHeaders }): string | undefined {
  const codings = codingsOf(answer);
  const isKnown = codings.length <= MAX_CODINGS && codings.every((coding) => Object.hasOwn(DECODERS, coding));
  return isKnown ? undefined : answer.headers['content-encoding'];
}

const NO_CODINGS: string[] = [];

function codingsOf({ headers }: { readonly headers: IncomingHttpHeaders }): string[] {
  const header = headers['content-encoding'];
  if (header === undefined) return NO_CODINGS;
  const codings = header.toLowerCase().split(',');
  return codings.map((coding) => coding.trim()).filter((coding) => coding !== '' && coding !== 'identity');
}

/** Adds the header of zlib, which some servers leave out of `deflate`. The checksum at the end is not needed. */
function withZlibHeader(): Transform {
  let isFirst = true;
  return new Transform({
    transform(chunk: Buffer, _, done) {
      if (isFirst && ((chunk[0] ?? 0) & 0x0f) !== 8) this.push(Buffer.from([0x78, 0x9c]));
      isFirst = false;
      done(null, chunk);
    },
  });
}
