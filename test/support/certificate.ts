import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Creates a certificate for `localhost` that is valid for one day, and its key, as PEM files in the folder. */
export async function createCertificate(folder: string): Promise<CertificateFiles> {
  const [certFile, keyFile] = [join(folder, 'made-cert.pem'), join(folder, 'made-key.pem')];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
  const cert = ['-x509', '-days', '1', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  await promisify(execFile)('openssl', ['req', ...key, ...cert, '-out', certFile]);
  return { certFile, keyFile };
}
