// What the manifest of the Desktop extension says, from package.json.

const DESCRIPTION = `Trunkline runs all your other MCP servers, restarts them when they crash, and shows their tools as one list.

It reads the servers from \`trunkline.yaml\`. \`npx trunkline init\` in a terminal creates this file from the servers of the MCP
clients that you use. Without a file, Trunkline has one tool, which shows where it looked.`;

/** The manifest, in version 0.3 of the format: 0.4 adds Python only. */
export function manifestOf({ name, version, description, license, keywords, engines }) {
  return {
    manifest_version: '0.3',
    name,
    display_name: 'Trunkline',
    version,
    description,
    long_description: DESCRIPTION,
    author: { name: 'Trunkline contributors' },
    license,
    keywords,
    server: {
      type: 'node',
      entry_point: 'dist/cli.js',
      mcp_config: {
        command: 'node',
        // biome-ignore-start lint/suspicious/noTemplateCurlyInString: Desktop replaces them.
        args: ['${__dirname}/dist/cli.js', '--config', '${user_config.config}'],
        // biome-ignore-end lint/suspicious/noTemplateCurlyInString: Desktop replaces them.
        env: {},
      },
    },
    user_config: {
      config: {
        type: 'file',
        title: 'Configuration file',
        description:
          'trunkline.yaml. Without a file, Trunkline looks in its usual places, such as ~/.config/trunkline.',
        required: false,
        // Empty, so that Trunkline looks in the usual places of each system.
        default: '',
      },
    },
    tools_generated: true,
    prompts_generated: true,
    compatibility: { platforms: ['darwin', 'win32'], runtimes: { node: engines.node } },
  };
}
