/** Preloaded into a process whose peak memory is asked for. */
process.on('exit', () => {
  console.error(`peak memory ${process.resourceUsage().maxRSS} KiB`);
});
