// Prints Shardy's attributes (Shardy dialect documentation, "Attributes").
#include <inttypes.h>

#include "sim/ir/print/print_parts.h"

static void print_sdy_comma_unless_first(uint32_t i, mp_strbuf_t *out) {
  if (i > 0) mp_strbuf_puts(out, ", ");
}

void mp_print_mesh_body(const mp_mesh_t *mesh, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "<[");
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    print_sdy_comma_unless_first(i, out);
    mp_print_quoted(mesh->axes[i].name, out);
    mp_strbuf_printf(out, "=%" PRId64, mesh->axes[i].size);
  }
  mp_strbuf_putc(out, ']');
  if (mesh->num_device_ids > 0) {
    mp_strbuf_puts(out, ", device_ids=");
    mp_print_index_list((mp_index_list_t){mesh->num_device_ids, mesh->device_ids}, out);
  }
  mp_strbuf_putc(out, '>');
}

static void print_sdy_axis(const mp_axis_ref_t *axis, mp_strbuf_t *out) {
  mp_print_quoted(axis->name, out);
  if (axis->size != 0) mp_strbuf_printf(out, ":(%" PRId64 ")%" PRId64, axis->pre_size, axis->size);
}

static void print_sdy_axis_items(mp_axis_list_t axes, mp_strbuf_t *out) {
  for (uint32_t i = 0; i < axes.count; ++i) {
    print_sdy_comma_unless_first(i, out);
    print_sdy_axis(&axes.axes[i], out);
  }
}

void mp_print_axes(mp_axis_list_t axes, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '{');
  print_sdy_axis_items(axes, out);
  mp_strbuf_putc(out, '}');
}

static void print_sdy_dim(const mp_dim_sharding_t *dim, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '{');
  print_sdy_axis_items(dim->axes, out);
  if (dim->is_open) mp_strbuf_puts(out, dim->axes.count > 0 ? ", ?" : "?");
  mp_strbuf_putc(out, '}');
  if (dim->priority >= 0) mp_strbuf_printf(out, "p%" PRId64, dim->priority);
}

void mp_print_sharding_body(const mp_sdy_sharding_t *sharding, mp_strbuf_t *out) {
  static const char *const kinds[] = {"", "max", "min"};
  mp_strbuf_putc(out, '<');
  if (sharding->mesh->name.size > 0) {
    mp_print_symbol(sharding->mesh->name, out);
  } else {
    mp_strbuf_puts(out, "mesh");
    mp_print_mesh_body(sharding->mesh, out);
  }
  mp_strbuf_puts(out, ", [");
  for (uint32_t i = 0; i < sharding->rank; ++i) {
    print_sdy_comma_unless_first(i, out);
    print_sdy_dim(&sharding->dims[i], out);
  }
  mp_strbuf_putc(out, ']');
  if (sharding->replicated.count > 0) {
    mp_strbuf_puts(out, ", replicated=");
    mp_print_axes(sharding->replicated, out);
  }
  if (sharding->unreduced.count > 0) {
    mp_strbuf_printf(out, ", unreduced=%s", kinds[sharding->unreduced_kind % 3]);
    mp_print_axes(sharding->unreduced, out);
  }
  mp_strbuf_putc(out, '>');
}

void mp_print_shardings_body(mp_sdy_shardings_t shardings, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (uint32_t i = 0; i < shardings.count; ++i) {
    print_sdy_comma_unless_first(i, out);
    mp_print_sharding_body(&shardings.shardings[i], out);
  }
  mp_strbuf_putc(out, ']');
}

void mp_print_axes_lists(const mp_attr_t *attr, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (uint32_t i = 0; i < attr->u.axes_lists.count; ++i) {
    print_sdy_comma_unless_first(i, out);
    mp_print_axes(attr->u.axes_lists.lists[i], out);
  }
  mp_strbuf_putc(out, ']');
}

void mp_print_all_to_all(const mp_attr_t *attr, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (uint32_t i = 0; i < attr->u.all_to_all_params.count; ++i) {
    const mp_all_to_all_param_t *param = &attr->u.all_to_all_params.params[i];
    print_sdy_comma_unless_first(i, out);
    mp_print_axes(param->axes, out);
    mp_strbuf_printf(out, ": %" PRId64 "->%" PRId64, param->source_dim, param->target_dim);
  }
  mp_strbuf_putc(out, ']');
}

// ---- sharding rules: factors are i .. z, then z_1, z_2, ... ----

static void print_sdy_factor(int64_t factor, mp_strbuf_t *out) {
  if (factor >= 0 && factor < 18)
    mp_strbuf_putc(out, (char)('i' + factor));
  else
    mp_strbuf_printf(out, "z_%" PRId64, factor - 17);
}

static void print_sdy_mappings(const mp_tensor_mapping_t *mappings, uint32_t count,
                               mp_strbuf_t *out) {
  mp_strbuf_putc(out, '(');
  for (uint32_t i = 0; i < count; ++i) {
    print_sdy_comma_unless_first(i, out);
    mp_strbuf_putc(out, '[');
    for (uint32_t d = 0; d < mappings[i].rank; ++d) {
      print_sdy_comma_unless_first(d, out);
      for (uint32_t f = 0; f < mappings[i].dims[d].count; ++f)
        print_sdy_factor(mappings[i].dims[d].values[f], out);
    }
    mp_strbuf_putc(out, ']');
  }
  mp_strbuf_putc(out, ')');
}

static void print_sdy_factors(const char *name, mp_index_list_t factors, mp_strbuf_t *out) {
  if (factors.count == 0) return;
  mp_strbuf_printf(out, " %s={", name);
  for (uint32_t i = 0; i < factors.count; ++i) {
    print_sdy_comma_unless_first(i, out);
    print_sdy_factor(factors.values[i], out);
  }
  mp_strbuf_putc(out, '}');
}

static void print_sdy_rule(const mp_sharding_rule_t *rule, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "#sdy.op_sharding_rule<");
  print_sdy_mappings(rule->operands, rule->num_operands, out);
  mp_strbuf_puts(out, "->");
  print_sdy_mappings(rule->results, rule->num_results, out);
  if (rule->factor_sizes.count > 0) {
    mp_strbuf_puts(out, " {");
    for (uint32_t i = 0; i < rule->factor_sizes.count; ++i) {
      print_sdy_comma_unless_first(i, out);
      print_sdy_factor(i, out);
      mp_strbuf_printf(out, "=%" PRId64, rule->factor_sizes.values[i]);
    }
    mp_strbuf_putc(out, '}');
  }
  print_sdy_factors("reduction", rule->reduction, out);
  print_sdy_factors("need_replication", rule->need_replication, out);
  print_sdy_factors("permutation", rule->permutation, out);
  print_sdy_factors("blocked_propagation", rule->blocked_propagation, out);
  mp_strbuf_puts(out, rule->is_custom ? ", custom>" : ">");
}

void mp_print_sdy(const mp_attr_t *attr, mp_strbuf_t *out) {
  switch (attr->kind) {
    case MP_KIND_MESH:
      mp_strbuf_puts(out, "#sdy.mesh");
      mp_print_mesh_body(attr->u.mesh, out);
      break;
    case MP_KIND_SHARDING:
      mp_strbuf_puts(out, "#sdy.sharding");
      mp_print_sharding_body(attr->u.sharding, out);
      break;
    case MP_KIND_SHARDINGS:
      mp_strbuf_puts(out, "#sdy.sharding_per_value<");
      mp_print_shardings_body(attr->u.shardings, out);
      mp_strbuf_putc(out, '>');
      break;
    case MP_KIND_AXES:
      mp_strbuf_puts(out, "#sdy<axis_ref_list");
      mp_print_axes(attr->u.axes, out);
      mp_strbuf_putc(out, '>');
      break;
    case MP_KIND_AXES_LISTS:
      mp_strbuf_puts(out, "#sdy<list_of_axis_ref_lists");
      mp_print_axes_lists(attr, out);
      mp_strbuf_putc(out, '>');
      break;
    case MP_KIND_ALL_TO_ALL_PARAMS:
      mp_strbuf_puts(out, "#sdy<all_to_all_param_list");
      mp_print_all_to_all(attr, out);
      mp_strbuf_putc(out, '>');
      break;
    case MP_KIND_SHARDING_RULE:
      print_sdy_rule(attr->u.rule, out);
      break;
    default:
      break;
  }
}
