import { resolve } from 'node:path';
import { jsonSchemaText } from '../../../config/schema/schema.js';
import { errorCode } from '../../../errors/error-text.js';
import { UsageError } from '../../../errors/usage-error.js';
import { replaceFile } from '../../../files/whole-file.js';
import { note } from '../../output.js';

/**
 * `trunkline schema`: returns the JSON Schema of the configuration, or writes it to a file and says how to refer to it.
 */
export async function schema(out: string | undefined): Promise<string | undefined> {
  if (out === undefined) return jsonSchemaText().trimEnd();
  const file = resolve(out);
  try {
    await replaceFile(file, jsonSchemaText(), { mode: 0o666 });
  } catch (cause) {
    const reason = errorCode(cause) ?? 'unknown';
    throw new UsageError(`the file ${file} cannot be written (${reason})`, 'name a file in a folder that exists', {
      cause,
    });
  }
  note(`Wrote ${file}. For completion in your editor, make this the first line of trunkline.yaml:`);
  note(`  # yaml-language-server: $schema=${file}`);
  return undefined;
}
