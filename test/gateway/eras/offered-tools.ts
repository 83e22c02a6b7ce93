import { toolOf } from '../../support/scripted-gateway.js';
import { ODD, oddText } from './odd-payload.js';

/** Names that cannot be exposed as they are, and names that only their ends tell apart. */
export const TOOLS = ['t', 'a b/ü', 'a b:ü', `${'x'.repeat(60)}1`, `${'x'.repeat(60)}2`];

/** A tool whose description tells its server and its own name. */
export function toolText(key: string, name: string): string {
  return oddText(JSON.parse(toolOf(name, { description: `${key} ${name}`, odd: ODD })), `${key} tool`);
}

/** Two pages, of which the second has the last tool. */
export function pagesOf(key: string): string[] {
  const tools = TOOLS.map((name) => toolText(key, name));
  const last = tools.pop() ?? '';
  return [`{"tools":[${tools.join()}],"nextCursor":"1"}`, `{"tools":[${last}]}`];
}
