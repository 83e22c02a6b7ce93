import { describe, expect, it } from 'vitest';
import { explainNpmFailure } from '../../src/packages/npm-failure.js';

function explain(output: string) {
  return explainNpmFailure(1, output.split('\n'));
}

describe('a failure of npm', () => {
  it('names a package that the registry does not have, and asks for the name', () => {
    const { message, hint } = explain(
      `npm error code E404
npm error 404 Not Found - GET https://registry.example/@nobody%2fnothing - Not found
npm error 404
npm error 404  The requested resource '@nobody/nothing@*' could not be found or you do not have permission to access it.`,
    );
    expect(message).toBe('E404: the registry has no package `@nobody/nothing`, or hides it from you');
    expect(hint).toContain('correct the name; if the package is private');
  });

  it('names the same package in the words of older versions of npm', () => {
    const { message } = explain(`npm ERR! code E404
npm ERR! 404 Not Found - GET https://registry.example/nothing - Not found
npm ERR! 404
npm ERR! 404  'nothing@*' is not in this registry.`);
    expect(message).toBe('E404: the registry has no package `nothing`, or hides it from you');
  });

  it('names a version that the registry does not have, and asks for the version', () => {
    const { message, hint } = explain(`npm error code ETARGET
npm error notarget No matching version found for tool@99.1.0.
npm error notarget In most cases you or one of your dependencies are requesting a package version that doesn't exist.`);
    expect(message).toBe('ETARGET: the registry has no version `tool@99.1.0`');
    expect(hint).toContain('correct the version');
  });

  it.each([
    ['E401', 'the registry refused access', 'npm login'],
    ['E403', 'the registry refused access', 'npm login'],
    ['ENEEDAUTH', 'the registry refused access', 'npm login'],
    ['ENOTFOUND', 'the registry cannot be reached', 'check the network connection'],
    ['ECONNREFUSED', 'the registry cannot be reached', 'check the network connection'],
    ['ERR_SOCKET_TIMEOUT', 'the registry cannot be reached', 'check the network connection'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'npm does not trust the certificate of the registry', 'NODE_EXTRA_CA_CERTS'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'npm does not trust the certificate of the registry', 'NODE_EXTRA_CA_CERTS'],
    ['E503', 'the registry has a problem', 'try again later'],
    ['ENOSPC', 'the disk is full', 'free some space'],
  ])('with the code %s means that %s, and has its own cure', (code, meaning, cure) => {
    const { message, hint } = explain(
      `npm error code ${code}\nnpm error errno ${code}\nnpm error something went wrong`,
    );
    expect(message).toBe(`${code}: ${meaning}`);
    expect(hint).toContain(cure);
  });

  it('of another kind is told in the first words of npm, cut to one short line', () => {
    expect(explain('npm error code EOTHER\nnpm error path /x\nnpm error It broke.\nnpm error More.')).toEqual({
      message: 'EOTHER: It broke.',
    });
    expect(explain(`npm error ${'x'.repeat(1_000)}`).message).toHaveLength(300);
    expect(explainNpmFailure(null, [])).toEqual({ message: 'npm ended with code null' });
  });
});
