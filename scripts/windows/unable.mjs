// The tests that cannot pass under Wine although Trunkline is right, each with what Wine lacks. A test that passes must leave this list.
// The keys of `tests` are files, the values the names of tests with those of their groups.
export const UNABLE = [
  {
    reason: 'Wine makes no symbolic links',
    tests: {
      'test/host/observe/log-file.test.ts': ['a log file is rotated where a link leads, and the link stays'],
      'test/host/files/watch-files.test.ts': [
        'a watched file behind a symbolic link is reported when it is written, or when the link leads elsewhere',
        'a watched file in a folder that a link leads to is reported when the link is exchanged, as in mounted configurations',
      ],
    },
  },
];
