import { describe, expect, it } from 'vitest';
import { ERROR_CODE, ERROR_SIGNS } from '../../../src/host/errors/error-text.js';
import { causeLines } from '../../../src/host/observe/cause-lines.js';
import { explainNpmFailure } from '../../../src/servers/packages/npm-client.js';
import { findNetworkTrouble } from '../../../src/status/status-advice.js';

/** Codes that Node and npm report. */
const CERTIFICATE = [
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_UNTRUSTED',
];
const NETWORK = ['ENOTFOUND', 'ENETUNREACH', 'EHOSTUNREACH', 'ETIMEDOUT', 'ECONNREFUSED', 'ECONNRESET'];

describe.each([
  ['certificate', CERTIFICATE, 'npm does not trust the certificate of the registry'],
  ['network', NETWORK, 'the registry cannot be reached'],
] as const)('the code of a %s error', (kind, codes, ofNpm) => {
  it.each(codes)('%s is known to the status, to installations and to the search for a cause', (code) => {
    expect(findNetworkTrouble([`reason: ${code}`])?.problem).toBe(`a ${kind} error (${code})`);
    expect(explainNpmFailure(1, [`npm error code ${code}`]).message).toBe(`${code}: ${ofNpm}`);
    expect(causeLines(['listening', `code: ${code}`, 'bye', 'done'], 2)).toEqual([`code: ${code}`, 'done']);
  });

  it.each(codes)('%s has all its signs in one table', (code) => {
    const { npmCode, text } = ERROR_SIGNS[kind];
    expect([npmCode, text, ERROR_CODE].map((sign) => sign.test(code))).toEqual([true, true, true]);
  });
});
