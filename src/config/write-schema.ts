// Run after a build, as `node dist/write-schema.js`: writes the generated schema to where editors find it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jsonSchemaText } from './json-schema.js';

writeFileSync(join(import.meta.dirname, '../config/trunkline.schema.json'), jsonSchemaText());
