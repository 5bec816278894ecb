/* static_program.c: ends well, and has neither libc nor a dynamic linker. */
void _start(void);

void _start(void)
{
#if defined(__x86_64__)
  __asm__ volatile("mov $231, %eax; xor %edi, %edi; syscall"); /* exit_group(0) */
#elif defined(__aarch64__)
  __asm__ volatile("mov x8, #94; mov x0, #0; svc #0");
#endif
  __builtin_unreachable();
}
