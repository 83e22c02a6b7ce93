/** The `code` of a system error, such as `ENOENT`, or of one of Node's own errors; undefined for anything else. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why a server cannot listen, by the code of the error. */
export const LISTEN_FAULTS = new Map([
  ['EADDRINUSE', 'another program already uses the port'],
  ['EADDRNOTAVAIL', 'this machine does not have that address'],
  ['EACCES', 'this user may not listen on that port'],
  ['ENOTFOUND', 'the host name does not exist'],
  ['EAI_AGAIN', 'the name server did not answer'],
]);

/**
 * Signs of a certificate that is not trusted, and of a network that does not reach a host. `npmCode` matches the error code that
 * npm reports, `text` words of Node, npm, Python, Go and Rust anywhere in a text.
 */
export const ERROR_SIGNS = {
  certificate: {
    npmCode: /CERT|^UNABLE_TO_|^ERR_TLS/,
    text: /SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED|CERTIFICATE_VERIFY_FAILED|certificate verify failed|self[- ]signed certificate|unable to (?:get local issuer|verify the first) certificate|certificate signed by unknown authority|UnknownIssuer/i,
  },
  network: {
    npmCode:
      /^(?:ENOTFOUND|EAI_AGAIN|ECONN\w+|ENET\w+|EHOST\w+|E\w*TIMEDOUT|E\w*TIMEOUT|ERR_SOCKET_TIMEOUT|FETCH_ERROR)$/,
    text: /\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ECONNREFUSED|ECONNRESET)\b|could not resolve host|failure in name resolution|407 proxy authentication required/i,
  },
} as const;

/** Codes of errors in a line: of operating systems and npm (`ENOENT`, `E404`), of Node (`ERR_…`), and of certificates. */
export const ERROR_CODE =
  /\bE(?:[A-Z]{4,20}|\d{3})\b|\bERR_[A-Z_]{3,60}\b|\bMODULE_NOT_FOUND\b|\b(?:SELF_SIGNED|UNABLE_TO|CERT_|DEPTH_ZERO)[A-Z_]{3,60}\b/;
