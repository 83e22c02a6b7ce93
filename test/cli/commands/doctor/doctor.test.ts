import { describe, expect, it } from 'vitest';
import { findingsText } from '../../../../src/cli/commands/doctor/doctor.js';
import { withoutHome } from '../../../../src/cli/output.js';
import { PLAIN } from '../../../../src/cli/terminal.js';
import { finding } from '../../../../src/setup/doctor/finding.js';

describe('the text of findings', () => {
  it('has them by area, with evidence and remedy below, and a count', () => {
    const findings = [
      finding('TL-CLIENT-NONE', 'no client has Trunkline registered'),
      finding('TL-NODE-OK', 'Node 22.4.0 fits', ['/usr/bin/node']),
      finding('TL-COMMAND-NOT-FOUND', 'x does not exist', [], { remedy: 'Install x:\n  npm install x' }),
    ];
    expect(findingsText(findings, PLAIN).split('\n')).toEqual([
      'Machine',
      'ok    TL-NODE-OK  Node 22.4.0 fits',
      '      | /usr/bin/node',
      '',
      'Configuration',
      'fail  TL-COMMAND-NOT-FOUND  x does not exist',
      '      Install x:',
      '        npm install x',
      '',
      'Clients and processes',
      'warn  TL-CLIENT-NONE  no client has Trunkline registered',
      '      Register it: `trunkline connect CLIENT`. `trunkline connect` alone lists the clients.',
      '',
      '1 problem and 1 warning.',
    ]);
  });

  it('says so if nothing is wrong, and colors the levels on a terminal', () => {
    const text = findingsText([finding('TL-NODE-OK', 'Node fits')], { ...PLAIN, isColored: true });
    expect(text).toMatch(/\n\nEverything is fine\.$/);
    expect(text).toContain('\u001b[32mok  \u001b[39m  TL-NODE-OK');
  });
});

describe('the home folder', () => {
  it.each([
    ['/home/me/x and /home/me', '~/x and ~'],
    ['mode of /home/me: 0644', 'mode of ~: 0644'],
    ['/home/merlin/x', '/home/merlin/x'],
    ['/home/me-too/x', '/home/me-too/x'],
    ['nothing', 'nothing'],
  ])('is written as ~: %s', (text, expected) => expect(withoutHome(text, '/home/me')).toBe(expected));

  it('stays if it is the root', () => expect(withoutHome('/a', '/')).toBe('/a'));
});
