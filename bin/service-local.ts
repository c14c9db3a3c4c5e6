#!/usr/bin/env node
// This file, and what it imports when the Node is too old, must parse and run on Node 18. What
// needs a newer one, and what `--version` can do without, is behind `import()`.

const argv = process.argv.slice(2);

if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
  const { packageVersion } = await import('../src/base/package-version.ts');
  console.log(packageVersion());
} else {
  const { isNodeTooOld, oldestNode } = await import('../src/base/package-version.ts');
  if (isNodeTooOld()) {
    const { runOnNewerNode } = await import('../src/cli/newer-node.ts');
    runOnNewerNode(oldestNode());
  } else {
    const { endWithLauncher } = await import('../src/cli/newer-node.ts');
    endWithLauncher();
    const { run } = await import('../src/cli/main.ts');
    process.exitCode = await run(argv, process);
    const { exitDespiteStuckThreads } = await import('../src/base/end-thread.ts');
    await exitDespiteStuckThreads(process.exitCode);
  }
}
