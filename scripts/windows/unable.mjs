// The tests that cannot pass under Wine although Trunkline is right, each with what Wine lacks. A test that passes must leave this list,
// unless it is unsteady: such a test fails in some runs.
// The keys of `tests` are files, the values the names of tests with those of their groups.
export const UNABLE = [
  {
    reason: 'Wine makes no symbolic links',
    tests: {
      'test/cli/commands/clients/import.test.ts': [
        'servers to import come once from a file that has two names, through a link or in letters of another case',
      ],
      'test/config/edit/edit-config.test.ts': [
        'an edited configuration keeps its mode and its symbolic link',
        'an edited configuration is not written where a symbolic link leads nowhere, and the message says so',
      ],
      'test/config/edit/env-draft.test.ts': [
        'the environment file beside a configuration that is a symbolic link stays one, and what it leads to takes the values',
      ],
      'test/config/resolve/package-bin.test.ts': ['findPackage refuses a package with a link that leads out of it'],
      'test/config/resolve/resolve-config.test.ts': [
        'by a link in PATH',
        'by a path',
        'through a link to the folder of the file',
        'as a script after an import',
      ].map((name) => `a server that is Trunkline itself with the same configuration is refused: ${name}`),
      'test/downstream/users/machine-tokens.test.ts': [
        'the tokens of machines are read through a symbolic link, as Kubernetes makes one',
      ],
      'test/downstream/users/user-variables.test.ts': [
        'the variables of a user are read through symbolic links, as Kubernetes makes them',
      ],
      'test/e2e/http.test.ts': ['a file for TLS may be a symbolic link, as programs that renew certificates leave it'],
      'test/hub/hub-folder.test.ts': ['the folder of a hub is refused if it is a symbolic link'],
      'test/host/files/watch-files.test.ts': [
        'a watched file behind a symbolic link is reported when it is written, or when the link leads elsewhere',
        'a watched file in a folder that a link leads to is reported when the link is exchanged, as in mounted configurations',
      ],
      'test/host/observe/log-file.test.ts': ['a log file is rotated where a link leads, and the link stays'],
      'test/servers/packages/npm-client.test.ts': [
        'npm is found in PATH through its link, but not where a script of another kind has its name',
      ],
      'test/servers/packages/written-files.test.ts': [
        'replace older data of the server if the newer one is wanted, which stays beside it, and no program or link',
        'are never written through a link that leads out of the new version',
      ].map((name) => `the files that a server writes beside its program ${name}`),
      'test/setup/clients/files/change-client-file.test.ts': [
        'connecting a client writes to a symbolic link inside the home folder through the link',
      ],
      'test/setup/clients/files/find-servers.test.ts': [
        'a file that cannot be read is not one that is a symbolic link, empty, or begins with a byte order mark',
      ],
      'test/setup/clients/files/own-entry.test.ts': [
        ...[
          'is the Node.js that runs with the real path of the program, and the configuration',
          'uses the link that outlives opt/homebrew/Cellar/node@22/22.1.0/bin/node',
          'uses the link that outlives .local/share/fnm/node-versions/v22/installation/bin/node',
          'uses the link that outlives .nvm/versions/node/v22.1.0/bin/node',
          'uses the link that outlives .local/share/mise/installs/node/22.1.0/bin/node',
          'never names the folder that fnm makes for one shell',
        ].map((name) => `the registered command ${name}`),
        'an entry that starts Trunkline is known by its program, also through a link, and in another installation',
      ],
      'test/upstream/auth/vault.test.ts': [
        'the vault knows a configuration by all of its names, and no other server, URL or configuration',
      ],
    },
  },
  {
    reason: 'Wine has neither tar nor git',
    tests: {
      'test/servers/packages/installation.test.ts': [
        'runs nothing of a repository that a dependency names, nor the program of its `.npmrc`',
        'takes dependencies from a repository, a folder and a URL only if the entry allows it',
        'takes a dependency under another name from the registry',
      ].map((name) => `the installation of a package ${name}`),
    },
  },
  {
    reason: 'Wine keeps the name of a removed file while a program has it open',
    tests: {
      'test/extras/record/rotated-file.test.ts': [
        'a file that several processes write is made again after somebody has removed it',
      ],
    },
  },
  {
    reason: 'Wine appends to a file in two steps, so that of two lines at the same moment one may replace the other',
    isUnsteady: true,
    tests: {
      'test/extras/record/rotated-file.test.ts': [
        'a file that several processes write keeps every line once, although all of them find it full at the same moment',
      ],
    },
  },
  {
    reason:
      'Wine ends the main thread of a process that passes much on, in some runs, and the process stays without it',
    isUnsteady: true,
    tests: {
      'test/e2e/relay.test.ts': [
        'the relay, with default settings forwards every byte of large results, which use the same memory one after the other',
      ],
    },
  },
  {
    reason: 'Wine shows the files of Linux, such as those of /proc',
    tests: {
      'test/setup/doctor/machine.test.ts': [
        'the machine has limits that are enough for a few servers, where they are known',
      ],
    },
  },
  {
    reason: 'Wine takes what is written to a pipe that nobody reads',
    tests: {
      'test/process/spawn-child.test.ts': ['a child that starts may be written to when it no longer listens'],
    },
  },
];
