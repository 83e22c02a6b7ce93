// Certificates that tests make, without a program of the system.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import forge from 'node-forge';

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate and its key, as PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Creates a certificate for `localhost` that is valid for one day, and its key, as PEM files in the folder. */
export function createCertificate(folder: string): CertificateFiles {
  const [certFile, keyFile] = [join(folder, 'made-cert.pem'), join(folder, 'made-key.pem')];
  const { cert, key } = certify({ name: 'localhost', host: 'localhost' });
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  return { certFile, keyFile };
}

/** Makes a certificate that is valid for one day. `authority` signs it; without one, its own key does. */
export function certify({
  name,
  host,
  authority,
}: {
  name: string;
  host?: string;
  authority?: Certificate;
}): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2_048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
  // The first bit of a serial number is 0.
  certificate.serialNumber = `01${randomBytes(15).toString('hex')}`;
  certificate.validity.notBefore = new Date(Date.now() - 60_000);
  certificate.validity.notAfter = new Date(Date.now() + 86_400_000);
  const subject = [{ name: 'commonName', value: name }];
  const issuer = authority && forge.pki.certificateFromPem(authority.cert).subject.attributes;
  certificate.setSubject(subject);
  certificate.setIssuer(issuer ?? subject);
  certificate.setExtensions([
    { name: 'basicConstraints', cA: authority === undefined },
    ...(host === undefined ? [] : [{ name: 'subjectAltName', altNames: [{ type: 2, value: host }] }]),
  ]);
  certificate.sign(forge.pki.privateKeyFromPem(authority?.key ?? privateKey), forge.md.sha256.create());
  return { cert: forge.pki.certificateToPem(certificate), key: privateKey };
}
