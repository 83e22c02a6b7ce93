import { resolve } from 'node:path';
import { jsonSchemaText } from '../../../config/schema/schema.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { replaceFile } from '../../../host/files/whole-file.js';
import type { Invocation } from '../../command.js';
import { note, print } from '../../output.js';

/** `trunkline schema`: prints the JSON Schema of the configuration, or writes it to a file and prints how to refer to it. */
export async function schema({ options: { out } }: Invocation<{ out: string }>): Promise<number> {
  if (out === undefined) {
    await print(jsonSchemaText().trimEnd());
    return EXIT.ok;
  }
  const file = resolve(out);
  await replaceFile(file, jsonSchemaText(), { mode: 0o666 });
  note(`Wrote ${file}. For completion in your editor, make this the first line of trunkline.yaml:`);
  note(`  # yaml-language-server: $schema=${file}`);
  return EXIT.ok;
}
