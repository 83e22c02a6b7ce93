import { describe, expect, it } from 'vitest';
import { findNetworkTrouble } from '../../../src/gateway/status/status-advice.js';

describe('the network trouble in a log', () => {
  it.each([
    ['npm error code SELF_SIGNED_CERT_IN_CHAIN', 'SELF_SIGNED_CERT_IN_CHAIN'],
    ['npm error errno UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
    ['ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]', 'CERTIFICATE_VERIFY_FAILED'],
    ['tls: failed to verify: x509: certificate signed by unknown authority', 'certificate signed by unknown authority'],
    ['error: invalid peer certificate: UnknownIssuer', 'UnknownIssuer'],
    ['fetch failed: self-signed certificate in certificate chain', 'self-signed certificate'],
  ])('is a certificate error in: %s', (line, sign) => {
    expect(findNetworkTrouble(['starting', line])).toEqual({
      problem: `a certificate error (${sign})`,
      cure: expect.stringContaining('set `NODE_EXTRA_CA_CERTS`'),
    });
  });

  it.each([
    ['npm error code ENOTFOUND', 'ENOTFOUND'],
    ['Error: connect ECONNREFUSED 127.0.0.1:1', 'ECONNREFUSED'],
    ['HTTP/1.1 407 Proxy Authentication Required', '407 Proxy Authentication Required'],
    ['curl: (6) Could not resolve host: registry.example', 'Could not resolve host'],
  ])('is a network error in: %s', (line, sign) => {
    expect(findNetworkTrouble([line])).toEqual({
      problem: `a network error (${sign})`,
      cure: expect.stringContaining('set `HTTPS_PROXY`'),
    });
  });

  it('is the certificate when the log names both', () => {
    const lines = ['fetch failed: ECONNRESET', 'code DEPTH_ZERO_SELF_SIGNED_CERT', 'ETIMEDOUT'];
    expect(findNetworkTrouble(lines)?.problem).toBe('a certificate error (DEPTH_ZERO_SELF_SIGNED_CERT)');
  });

  it('is nothing in other lines, nor in lines of long ago', () => {
    expect(findNetworkTrouble([])).toBeUndefined();
    expect(findNetworkTrouble(['listening on stdio', 'API_KEY is not set'])).toBeUndefined();
    expect(findNetworkTrouble(['code ENOTFOUND', ...Array(20).fill('fine')])).toBeUndefined();
  });
});
