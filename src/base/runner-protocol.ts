/**
 * Protocols of the reports of runners, as numbers that rise with each change that the other side must
 * know. A field that the other side may ignore needs no new protocol.
 */
export const RUNNER_PROTOCOL: { readonly newest: number; readonly oldest: number } = {
  /**
   * Protocol of runners and servers of this version. From protocol 2 on, runners pack the bars before a
   * session, and report `strategy.log`.
   */
  newest: 2,
  /** Servers accept runners from this protocol on. */
  oldest: 1,
};

export const RUNNER_VERSION_HEADER = 'service-runner-version';
export const RUNNER_PROTOCOL_HEADER = 'service-runner-protocol';
