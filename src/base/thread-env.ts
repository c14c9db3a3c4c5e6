const { NODE_COMPILE_CACHE } = process.env;
/** Environment of threads: without the signing key, which may be in that of the process. */
export const THREAD_ENV = { ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) };
