/* within.c: see within.h. A block is such a one where a live block or mapping has its address
 * before the allocation is taken in: what was freed has left the pointer map. Small blocks share
 * pages, so an address inside is asked of the driver. */
#include "interpose/record/within.h"

#include "interpose/record/context.h"
#include "interpose/record/hash_table.h"

_Atomic bool within_possible;

static hash_table handed_out; /* such blocks, by address; x, y: 1 */

static bool is_in_known_block(uint64_t address)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  CUdeviceptr start = 0;
  if (pointer_block_at(address).tag) return true;
  if (!pointer_tag(address) || !ask || ask(&start, NULL, address) != CUDA_SUCCESS) return false;
  const pointer_block b = pointer_block_at(start);
  return b.tag && address - start < b.bytes;
}

bool within_begins(uint64_t address)
{
  return is_in_known_block(address) && hash_table_put(&handed_out, address, 1, 1);
}

pointer_block within_take(uint64_t address)
{
  uint64_t x, y;
  if (address && hash_table_take(&handed_out, address, &x, &y))
    return (pointer_block){address, 0, WEIR_TAG_WITHIN};
  return pointer_block_remove(address);
}

void within_put_back(pointer_block block)
{
  if (block.tag & WEIR_TAG_WITHIN)
    (void)hash_table_put(&handed_out, block.start, 1, 1);
  else
    pointer_block_add(block);
}
