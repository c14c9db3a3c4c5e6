/** Open streams of this process, with the id of their administrator. */
export const openStreams = new Map<object, string>();
