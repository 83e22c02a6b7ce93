import { toolOf } from '../../support/scripted-gateway.js';
import { ODD, oddText } from './odd-payload.js';

/** Names that cannot be exposed unchanged, and names that differ only at their ends. */
export const TOOLS = ['t', 'a b/ü', 'a b:ü', `${'x'.repeat(60)}1`, `${'x'.repeat(60)}2`];

/** A tool with its server and its own name in the description. */
export function toolText(key: string, name: string): string {
  return oddText(JSON.parse(toolOf(name, { description: `${key} ${name}`, odd: ODD })), `${key} tool`);
}

/** Two pages. The second one has only the last tool. */
export function pagesOf(key: string): string[] {
  const tools = TOOLS.map((name) => toolText(key, name));
  const last = tools.pop() ?? '';
  return [`{"tools":[${tools.join()}],"nextCursor":"1"}`, `{"tools":[${last}]}`];
}
