import type { HttpConfig } from '../../config/file/check-file.js';
import type { IssuerMetadata } from '../../downstream/users/issuer-document.js';
import { errorMessage } from '../../host/errors/error-text.js';
import { type Finding, finding } from './finding.js';

/** Checks whether the identity provider can log users in through this gateway. `read` reads the metadata of its issuer. */
export async function checkFront(
  { auth, publicUrl }: HttpConfig,
  read: (issuer: string) => Promise<IssuerMetadata>,
): Promise<Finding[]> {
  const { front, jwt } = auth ?? {};
  if (front === undefined || jwt === undefined) return [];
  const { issuer } = jwt;
  let metadata: IssuerMetadata;
  try {
    metadata = await read(issuer);
  } catch (error) {
    return [finding('TL-FRONT-PROVIDER', `the metadata of ${issuer} cannot be read`, [errorMessage(error)])];
  }
  const missing = ['authorization_endpoint', 'token_endpoint'].filter((name) => typeof metadata[name] !== 'string');
  if (missing.length > 0)
    return [finding('TL-FRONT-PROVIDER', `the metadata of ${issuer} name no ${missing.join(' and no ')}`)];
  const { code_challenge_methods_supported: methods = ['S256'] } = metadata;
  if (!Array.isArray(methods) || !methods.includes('S256'))
    return [finding('TL-FRONT-PROVIDER', `${issuer} does not support the PKCE method S256, by its metadata`)];
  const ids = [front.clientId, ...Object.values(front.clientIds ?? {})].join(', ');
  const registered = `The public client ${ids} needs the redirect URI ${publicUrl}/authorize/callback there.`;
  return [finding('TL-FRONT-OK', `users log in at ${issuer} through ${publicUrl}`, [registered])];
}
